"""The Translator's front needs no torch: an engine of one's own translates through it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from copying_model import facts

from tolka.data.batch import BOS, EOS
from tolka.engines.engine import Engine
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.models.base import ModelConfig
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options import SearchConfig
from tolka.text.pairs import Pair
from tolka.tokenizer.language_tags import NO_TAGS, Tags
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.translation.request import Request
from tolka.translation.translator import Translator

TEXTS = ["red birds sing", "blue fish swim", "the old boat drifts home"]


class Reversing(Engine):
    """Returns the ids of each source in reverse order; only one sentence fits in its memory."""

    cpu_threads, freed = 1, 0

    def translate(
        self,
        search: SearchConfig,
        sources: list[list[int]],
        wishes: Sequence[Wish] = (),
        scored: bool = False,
        tags: Tags = NO_TAGS,
    ) -> list[list[Hypothesis]]:
        if len(sources) > 1:
            raise MemoryError
        return [[Hypothesis(ids[::-1], 0.0, 0.0, True)] for ids in sources]

    @contextmanager
    def side_by_side(self, count: int) -> Iterator[Executor]:
        with ThreadPoolExecutor(count) as threads:
            yield threads

    def free_memory(self) -> None:
        self.freed += 1


def test_an_engine_of_one_s_own_translates() -> None:
    pairs = [Pair(text, text) for text in TEXTS * 20]
    config = TokenizerConfig(vocab_size=300)
    tokenizer = train_tokenizer(config, lambda: iter(pairs), lambda remark: None)
    engine = Reversing()
    results = Translator(engine, facts(tokenizer), Request(GreedyConfig())).translate(TEXTS)
    expected = tokenizer.decode_target([ids[::-1] for ids in tokenizer.encode_source(TEXTS)])
    assert [result.text for result in results] == expected
    assert engine.freed >= 1


@pytest.mark.parametrize("model", [TransformerConfig(d_model=16, heads=2, layers=1), RnnConfig(d_model=16, layers=1)])
@torch.inference_mode()
def test_given_translations_are_scored_token_by_token(model: ModelConfig) -> None:
    """By hand: step by step, with the reference's token each time."""
    torch.manual_seed(0)
    built = model.build(20, 20, True).eval()
    pairs = [([4, 5, 6], [7, 8]), ([9], []), ([4, 10, 11, 12, 13], [14, 15, 16, 17, 18, 19])]
    engine = TorchEngine(built, torch.device("cpu"))
    found = engine.score([source for source, _ in pairs], [target for _, target in pairs])
    for (source, target), scores in zip(pairs, found, strict=True):
        state = built.start(torch.tensor([[*source, EOS]]), torch.tensor([len(source) + 1]))
        token, expected = BOS, []
        for reference in [*target, EOS]:
            features, state = built.step(torch.tensor([[token]]), state)
            expected.append(built.logits(features)[0, 0].log_softmax(dim=0)[reference].item())
            token = reference
        assert scores == pytest.approx(expected, abs=1e-5)


def test_a_large_vocabulary_is_scored_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logits of NLLB-200's 256 000 subwords for a batch of 4096 tokens would take 4 GB."""
    size = 200_000
    built = RnnConfig(d_model=4, layers=1).build(20, size, False)
    real, largest = built.logits, list[int]()

    def logits(features: torch.Tensor) -> torch.Tensor:
        found = real(features)
        largest.append(found.numel())
        return found

    monkeypatch.setattr(built, "logits", logits)
    scores = TorchEngine(built, torch.device("cpu")).score([[5]] * 40, [[7, 8]] * 40)
    assert [len(row) for row in scores] == [3] * 40
    assert max(largest) <= 2**22
    assert sum(largest) == 120 * size


@pytest.mark.parametrize(("gigabytes", "tokens"), [(0, 16384), (8, 32768), (16, 65536), (139, 262144)])
def test_batches_and_windows_follow_the_memory_of_a_gpu(gigabytes: int, tokens: int) -> None:
    decoding = DecodingConfig()
    assert decoding.batch_tokens(gigabytes * 2**30) == tokens
    assert DecodingConfig(tokens=100, window=7).batch_tokens(gigabytes * 2**30) == 100
    assert decoding.window_lines(on_gpu=gigabytes > 0) == (20_000 if gigabytes else 2000)
    assert DecodingConfig(window=7).window_lines(on_gpu=True) == 7
