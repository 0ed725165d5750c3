"""The contract of every architecture with search and training, for every registered name and its variants."""

import dataclasses
import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
import torch
from small_models import VARIANTS

from tolka.data.batch import EOS, collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.models.base import MODELS, ModelConfig, Seq2Seq
from tolka.models.ensemble import Ensemble
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig


@dataclass(frozen=True, kw_only=True)
class EnsembleOf(ModelConfig):
    """Built of others: an ensemble has no name of its own, but keeps what every architecture promises."""

    first: ModelConfig
    second: ModelConfig

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Seq2Seq:
        """An ensemble of two models of different widths."""
        return Ensemble([one.build(source_vocabulary, target_vocabulary, shared) for one in (self.first, self.second)])


VOCABULARY = 12
SMALL = VARIANTS
ENSEMBLE = EnsembleOf(
    first=TransformerConfig(d_model=32, heads=4, layers=1, dropout=0.0),
    second=TransformerConfig(d_model=24, heads=2, layers=2, norm="post", positions="rotary", dropout=0.0),
)
SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [5, 5, 4, 10, 6, 9, 7]]
TARGETS = [[8, 7, 6], [10, 9, 4, 5, 11, 6], [4], [7, 9]]


def without_dropout(config: ModelConfig) -> ModelConfig:
    """Return the config with every kind of dropout off."""
    off = {field.name: 0.0 for field in dataclasses.fields(config) if field.name.endswith("dropout")}
    return dataclasses.replace(config, **off)  # type: ignore[arg-type]


def make(config: ModelConfig) -> Seq2Seq:
    torch.manual_seed(3)
    return config.build(VOCABULARY, VOCABULARY, shared=True).double().eval()


def names_of(configs: Iterable[ModelConfig]) -> dict[str, str]:
    """Registered name -> the first variant of it."""
    found: dict[str, str] = {}
    for variant, config in zip(SMALL, configs, strict=True):
        found.setdefault(dataclasses.asdict(config)["name"], variant)
    return found


# For what searches and states decide, one variant of each name and of each kind of state. tests/search compares every
# variant with a search by teacher forcing, so that states of all of them are re-ordered there.
EACH_KIND = [*names_of(SMALL.values()).values(), "transformer rotary", "lstm general fed", "gru", "ensemble"]
each_kind = pytest.mark.parametrize("config", EACH_KIND, indirect=True)


@pytest.fixture(params=[*SMALL, "ensemble"], ids=str)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return {**SMALL, "ensemble": ENSEMBLE}[request.param]


def test_every_registered_name_is_tried() -> None:
    assert set(names_of(SMALL.values())) == set(MODELS.names()) - {"auto"}  # which is replaced before anything is built


def _near(width: int, step: int) -> list[int]:
    """Widths up to three steps away."""
    return [near for near in range(width - 3 * step, width + 4 * step, step) if near > 0]


@pytest.mark.parametrize("config", EACH_KIND[:-1], indirect=True)  # an ensemble has no width of its own
@pytest.mark.parametrize("vocabularies", [(60, 60, True), (60, 40, False)])
def test_a_width_is_found_for_a_number_of_parameters(config: ModelConfig, vocabularies: tuple[int, int, bool]) -> None:
    """The d_model chosen is the nearest of the allowed widths; a wider model has more parameters."""
    assert isinstance(config, TransformerConfig | RnnConfig)
    follows = dataclasses.replace(config, share_embeddings="auto", parameters=120_000)
    found = follows.sized(*vocabularies)
    assert found == dataclasses.replace(follows, d_model=found.d_model)
    with torch.device("meta"):
        counts = {
            width: dataclasses.replace(found, d_model=width).build(*vocabularies).parameter_count()
            for width in sorted({*_near(found.d_model, found.width_step), *(found.width_step * n for n in (1, 10, 30))})
        }
    assert list(counts.values()) == sorted(counts.values())
    assert min(counts, key=lambda width: abs(counts[width] - 120_000)) == found.d_model
    assert config.sized(*vocabularies) is config


def test_step_by_step_equals_teacher_forcing(config: ModelConfig) -> None:
    model = make(config)
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        at_once = model(batch)
        state = model.start(batch.source, batch.source_lengths)
        steps = []
        for t in range(batch.target_in.size(1)):
            features, state = model.step(batch.target_in[:, t : t + 1], state)
            steps.append(features)
    torch.testing.assert_close(batch.valid(torch.cat(steps, dim=1)), at_once)
    assert at_once.shape == (batch.tokens, model.feature_size)


def test_a_sentence_alone_equals_the_same_in_a_padded_batch(config: ModelConfig) -> None:
    model = make(config)
    with torch.no_grad():
        together = model(collate(SOURCES, TARGETS)).split([len(target) + 1 for target in TARGETS])
        for source, target, features in zip(SOURCES, TARGETS, together, strict=True):
            torch.testing.assert_close(model(collate([source], [target])), features)


@each_kind
def test_beam_of_one_equals_greedy(config: ModelConfig) -> None:
    model = make(config)
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        search = GreedyConfig(max_length_extra=4).build()
        greedy = search.search(model, batch.source, batch.source_lengths)
        beam = BeamConfig(beam_size=1, max_length_extra=4).build().search(model, batch.source, batch.source_lengths)
    assert [h[0].tokens for h in greedy] == [h[0].tokens for h in beam]
    assert [h[0].finished for h in greedy] == [h[0].finished for h in beam]
    for one, other in zip(greedy, beam, strict=True):
        assert one[0].log_probability == pytest.approx(other[0].log_probability, abs=1e-4)


@each_kind
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_as_wide_as_the_space_equals_exhaustive_search(config: ModelConfig, length_penalty: float) -> None:
    model = make(config)
    limit = 3  # tokens, </s> included: 10 * 10 open prefixes at most
    search = BeamConfig(beam_size=400, length_penalty=length_penalty, max_length_factor=0.0, max_length_extra=limit - 1)
    batch = collate(SOURCES[:2], TARGETS[:2])
    with torch.no_grad():
        found = search.build().search(model, batch.source, batch.source_lengths)
    words = [i for i in range(VOCABULARY) if i > EOS]
    candidates = [list(c) for n in range(limit) for c in itertools.product(words, repeat=n)]
    for source, hypotheses in zip(SOURCES[:2], found, strict=True):
        sums = log_probabilities(model, source, candidates)
        scores = {tuple(c): p / search.penalty(len(c) + 1) for c, p in zip(candidates, sums, strict=True)}
        best = max(scores, key=lambda c: scores[c])
        assert tuple(hypotheses[0].tokens) == best
        assert hypotheses[0].score == pytest.approx(scores[best], abs=1e-4)


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("search", [GreedyConfig(max_length_extra=3), BeamConfig(beam_size=3, max_length_extra=3)])
def test_many_sentences_together_are_searched_as_each_alone(config: ModelConfig, search: SearchConfig) -> None:
    """Sentences that end at different steps, and have different limits."""
    model = make(config)
    rng = random.Random(3)
    sources = sorted((rng.choices(range(4, VOCABULARY), k=rng.randint(1, 9)) for _ in range(25)), key=len)
    with torch.no_grad():
        batch = collate(sources, sources)
        together = search.build().search(model, batch.source, batch.source_lengths)
        for source, found in zip(sources, together, strict=True):
            one = collate([source], [source])
            (alone,) = search.build().search(model, one.source, one.source_lengths)
            assert [(h.tokens, h.finished) for h in found] == [(h.tokens, h.finished) for h in alone]
            assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-4)


def log_probabilities(model: Seq2Seq, source: list[int], targets: list[list[int]]) -> list[float]:
    """Log-probability of each target with its </s> by teacher forcing, without search."""
    with torch.no_grad():
        log_p = model.logits(model(collate([source] * len(targets), targets))).log_softmax(dim=-1)
    of_tokens = log_p.gather(1, torch.tensor([[token] for target in targets for token in [*target, EOS]]))
    return [float(part.sum()) for part in of_tokens.split([len(target) + 1 for target in targets])]


@each_kind
def test_select_expands_reorders_and_drops(config: ModelConfig) -> None:
    """Hypotheses that diverged continue as if each had been alone."""
    model = make(config)
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        state = model.start(batch.source, batch.source_lengths)
        _, state = model.step(torch.full((4, 1), 1), state)
        state = state.select(torch.tensor([[0, 0], [1, 1], [3, 3]]))  # two hypotheses each, sentence 2 gone
        _, state = model.step(torch.tensor([[4, 5], [6, 7], [8, 9]]), state)
        state = state.select(torch.tensor([[5, 4], [1, 1]]))  # sentence 3 with its two swapped, then sentence 0
        features, _ = model.step(torch.tensor([[10, 11], [4, 4]]), state)
        for row, source, prefix in ((0, 3, [9, 10]), (0, 3, [8, 11]), (1, 0, [5, 4])):
            column = 1 if prefix == [8, 11] else 0
            alone = model(collate([SOURCES[source]], [prefix]))[len(prefix)]
            torch.testing.assert_close(features[row, column], alone)


@each_kind
def test_four_pairs_can_be_learnt_by_heart(config: ModelConfig) -> None:
    torch.manual_seed(5)
    model = without_dropout(config).build(VOCABULARY, VOCABULARY, shared=True)
    rng = random.Random(1)
    sources = [rng.sample(range(4, VOCABULARY), k=2 + n % 4) for n in range(4)]
    targets = [rng.sample(range(4, VOCABULARY), k=1 + n % 5) for n in range(4)]
    batch = collate(sources, targets)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    objective = Objective(model, label_smoothing=0.0)
    for _ in range(45):
        optimizer.zero_grad()
        sums = objective(batch)
        (sums.loss / sums.tokens).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = GreedyConfig().build().search(model, batch.source, batch.source_lengths)
    assert [hypotheses[0].tokens for hypotheses in found] == targets


def test_inspect_equals_the_fused_path(config: ModelConfig) -> None:
    model = make(config)
    batch = collate(SOURCES, TARGETS)
    if type(model).inspect is Seq2Seq.inspect:
        with pytest.raises(ConfigError, match="no attention maps"):
            model.inspect(batch)
        return
    with torch.no_grad():
        fused, seen = model(batch), model.inspect(batch)
    torch.testing.assert_close(seen.features, fused, rtol=1e-10, atol=1e-10)
    assert seen.attention or dataclasses.asdict(config).get("attention") == "none"
    source_tokens, target_tokens = batch.source != 0, batch.target_out != 0
    for name, weights in seen.attention.items():
        queries = source_tokens if name.startswith("encoder") else target_tokens
        rows = weights.transpose(1, 2)[queries]  # of queries that are tokens: (N, heads, S)
        torch.testing.assert_close(rows.sum(-1), torch.ones_like(rows.sum(-1)))
        if name.endswith("cross") or name.startswith("encoder"):
            assert weights.transpose(2, 3).transpose(1, 2)[~source_tokens].abs().max() == 0


@pytest.mark.parametrize("config", [*EACH_KIND[:-1], "transformer attention dropout"], indirect=True)
def test_dropout_zero_turns_off_every_kind_that_is_not_set_by_itself(config: ModelConfig) -> None:
    options = dataclasses.asdict(config)
    set_by_itself = any(rate > 0 for key, rate in options.items() if key.endswith("_dropout"))
    model = make(dataclasses.replace(config, dropout=0.0))  # type: ignore[call-arg]
    batch = collate(SOURCES, TARGETS)
    same = torch.allclose(model.train()(batch), model.eval()(batch))
    assert same is not set_by_itself


def test_gradients_reach_every_parameter(config: ModelConfig) -> None:
    model = make(config).train()
    batch = collate(SOURCES, TARGETS)
    Objective(model, 0.1)(batch).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@each_kind
def test_padding_takes_no_gradient(config: ModelConfig) -> None:
    """Two sentences of different length in one batch give the sum of the gradients that they give alone."""
    alone, together = make(config), make(config)
    for number in (1, 3):
        Objective(alone, 0.0)(collate([SOURCES[number]], [TARGETS[number]])).loss.backward()
    Objective(together, 0.0)(collate([SOURCES[1], SOURCES[3]], [TARGETS[1], TARGETS[3]])).loss.backward()
    for one, other in zip(alone.parameters(), together.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
