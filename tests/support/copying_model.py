"""A translator with a model that copies its source, so that every output is known."""

import torch
from torch import Tensor, nn

from tolka.data.batch import EOS, Batch
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.verify import TrainingSources
from tolka.models.base import DecoderState, Seq2Seq
from tolka.search.base import SearchConfig
from tolka.search.greedy import GreedyConfig
from tolka.system.progress import Say, silent
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.translation.request import Request
from tolka.translation.translator import Translator

PAIRS = [
    Pair("red birds sing. blue fish swim, green frogs jump.", "red birds sing! blue fish swim; green frogs jump?"),
    Pair("the old boat drifts home", "고래가 노래합니다. 달이 뜹니다。"),
] * 4


class CopyState(DecoderState):
    """The source, and how far it has been copied."""

    def __init__(self, source: Tensor, position: int, beam: int) -> None:
        self.source, self.position, self.beam = source, position, beam

    def select(self, rows: Tensor) -> "CopyState":
        return CopyState(self.source[rows[:, 0] // self.beam], self.position, rows.size(1))


class Copy(Seq2Seq):
    """Copies its source, and records the batches that it was given."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary
        self.batches: list[Tensor] = []

    def forward(self, batch: Batch) -> Tensor:
        raise NotImplementedError

    def logits(self, features: Tensor) -> Tensor:
        return nn.functional.one_hot(features.squeeze(-1), self.vocabulary_size).float() * 20

    def logits_parameters(self) -> list[nn.Parameter]:
        return []

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        self.batches.append(source)
        return CopyState(torch.cat([source, torch.full_like(source[:, :1], EOS)], dim=1), 0, 1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        assert isinstance(state, CopyState)
        now = state.source[:, min(state.position, state.source.size(1) - 1)]
        features = now[:, None, None].expand(*token.shape, 1)
        return features, CopyState(state.source, state.position + 1, token.size(1))


TOKENIZER: Tokenizer = train_tokenizer(TokenizerConfig(vocab_size=330), lambda: iter(PAIRS), lambda remark: None)


def facts(
    tokenizer: Tokenizer = TOKENIZER,
    max_length: int = 50,
    characters: CharacterForm = KEEP,
    direction: Direction = UNKNOWN,
) -> ModelFacts:
    return ModelFacts(tokenizer, TrainingSources(max_length), characters, (direction,) if direction.is_known else ())


def translator(
    search: SearchConfig | None = None,
    max_length: int = 50,
    tokens: int = 200,
    workers: int = 0,
    split: str = "length",
    direction: Direction = UNKNOWN,
    say: Say = silent,
) -> Translator[TorchEngine]:
    model = Copy(TOKENIZER.target_size)
    cpu = torch.device("cpu")
    known = facts(max_length=max_length, direction=direction)
    decoding = DecodingConfig(tokens=tokens, split=split)
    made = Translator(TorchEngine(model, cpu), known, Request(search or GreedyConfig()), decoding, say)
    made._decoder.workers = workers or made._decoder.workers
    return made
