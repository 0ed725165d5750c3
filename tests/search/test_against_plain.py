"""Every search with every option equals the same search written out (tests/support/plain_search.py)."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from oracle import perturb
from plain_search import Found, PlainSearch, scored
from rows import each_row
from small_models import VARIANTS

from tolka.data.batch import collate
from tolka.models.ensemble import Ensemble
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import NO_WISH, Hypothesis, Wish
from tolka.search.options import DiverseConfig
from tolka.search.sampling import SamplingConfig

VOCABULARY = 10
SOURCES = [[4, 5, 6, 7], [8, 9], [], [5, 5, 4, 9, 6]]
SHORT: dict[str, Any] = {"max_length_factor": 1.0, "max_length_extra": 2}
RULES: list[dict[str, Any]] = [
    {},
    {"min_length": 4},
    {"min_length": 99},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2},
    {"min_length": 5, "no_repeat_ngram": 2},
]
BEAMS: list[dict[str, Any]] = [
    {"beam_size": 3},
    {"beam_size": 4, "n_best": 3},
    {"beam_size": 4, "n_best": 4, "length_normalization": "plain"},
    {"beam_size": 3, "n_best": 2, "length_normalization": "plain", "length_penalty": 0.3},
    {"beam_size": 5, "n_best": 2, "length_normalization": "none"},
    {"beam_size": 2, "length_penalty": 4.0},
]
GROUPS: list[dict[str, Any]] = [
    {"beam_size": 4, "groups": 2, "n_best": 4},
    {"beam_size": 3, "groups": 3, "diversity": 2.0, "n_best": 3},
    {"beam_size": 6, "groups": 3, "diversity": 0.8, "n_best": 2, "length_normalization": "plain"},
]
SAMPLES: list[dict[str, Any]] = [
    {"n_best": 3},
    {"temperature": 0.5, "seed": 5},
    {"temperature": 2.0, "top_k": 3, "n_best": 2},
    {"top_p": 0.6, "n_best": 2},
    {"epsilon": 0.15, "n_best": 2},
    {"temperature": 1.3, "top_k": 6, "top_p": 0.9, "epsilon": 0.01, "seed": 2, "n_best": 4},
]
WISHES = [
    Wish(prefix=(7, 8), banned=((9,), (4, 5))),
    Wish(banned=((4,), (5, 8, 7), (6,))),
    NO_WISH,
    Wish(prefix=(5, 5, 5), banned=((5, 5), (6, 7))),
]
NO_WISHES = [NO_WISH] * len(SOURCES)


@cache
def plain(name: str, seed: int) -> PlainSearch:
    """A random model of the architecture, its probabilities known by teacher forcing."""
    torch.manual_seed(seed)
    members = [TransformerConfig(d_model=16, heads=2, layers=1), RnnConfig(d_model=16, attention="dot")]
    configs = members if name == "ensemble" else [VARIANTS[name]]
    models = [config.build(VOCABULARY, VOCABULARY, True) for config in configs]
    model = (Ensemble(models) if name == "ensemble" else models[0]).double().eval()
    perturb(model, seed)
    return PlainSearch(model)


def run(reference: PlainSearch, config: SearchConfig, wishes: Sequence[Wish] = NO_WISHES) -> list[list[Hypothesis]]:
    """Search all sentences in one batch, and two of them alone as well; they must agree."""
    search = config.build()
    with torch.inference_mode():
        batch = collate(SOURCES, SOURCES)
        together = search.search(reference.model, batch.source, batch.source_lengths, wishes)
        for source, wish, found in list(zip(SOURCES, wishes, together, strict=True))[1::2]:
            one = collate([source], [source])
            [alone] = search.search(reference.model, one.source, one.source_lengths, [wish] if wish else ())
            assert [(each.tokens, each.finished) for each in alone] == [(each.tokens, each.finished) for each in found]
    chosen = [found[: config.returned] for found in together]
    return [sorted(found, key=lambda each: -each.score) for found in chosen]


def assert_same(found: Sequence[Hypothesis], expected: Sequence[tuple[Found, float]]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(tokens, end) for (tokens, _, end), _ in expected]
    assert [each.log_probability for each in found] == pytest.approx([p for (_, p, _), _ in expected], abs=1e-4)
    assert [each.score for each in found] == pytest.approx([score for _, score in expected], abs=1e-4)


def expected_beam(reference: PlainSearch, config: BeamConfig, number: int, wish: Wish) -> list[tuple[Found, float]]:
    pool = reference.beam(config, SOURCES[number], wish)
    rated = [(each, scored(each, config.length_penalty, config.length_normalization)) for each in pool]
    return sorted(rated, key=lambda item: -item[1])[: config.n_best]


def expected_diverse(
    reference: PlainSearch, config: DiverseConfig, number: int, wish: Wish
) -> list[tuple[Found, float]]:
    """The groups' best ones, then their second ones, without those that are there already."""
    settings = (config.beam_size, config.groups, config.diversity, wish)
    chosen: list[tuple[Found, float]] = []
    pools = [
        sorted(
            [(each, scored(each, config.length_penalty, config.length_normalization)) for each in pool],
            key=lambda item: -item[1],
        )
        for pool in reference.groups(config, SOURCES[number], *settings)
    ]
    for rank in range(max(map(len, pools))):
        for candidate in sorted([pool[rank] for pool in pools if rank < len(pool)], key=lambda item: -item[1]):
            if candidate[0][0] not in [tokens for (tokens, *_), _ in chosen] and len(chosen) < config.n_best:
                chosen.append(candidate)
    return sorted(chosen, key=lambda item: -item[1])


def check(reference: PlainSearch, config: SearchConfig, wishes: Sequence[Wish] = NO_WISHES) -> None:
    """Compare a search with its plain version, sentence by sentence."""
    for number, (found, wish) in enumerate(zip(run(reference, config, wishes), wishes, strict=True)):
        if isinstance(config, DiverseConfig):
            expected = expected_diverse(reference, config, number, wish)
        elif isinstance(config, BeamConfig):
            expected = expected_beam(reference, config, number, wish)
        elif isinstance(config, SamplingConfig):
            drawn = [(each, each[1]) for each in reference.samples(config, SOURCES[number], wish)]
            expected = sorted(drawn, key=lambda item: -item[1])
        else:
            one = reference.greedy(config, SOURCES[number], wish)
            expected = [(one, one[1])]
        assert_same(found, expected)


SEEDED = [("transformer", 1, NO_WISHES), ("gru additive fed", 1, WISHES), ("ensemble", 2, WISHES)]
EVERY = [*VARIANTS, "ensemble"]


@pytest.mark.slow
@each_row(("name", "seed", "wishes"), SEEDED, ids=lambda value: value if isinstance(value, str) else "")
def test_each_rule_in_each_search(name: str, seed: int, wishes: Sequence[Wish]) -> None:
    for rules in RULES:
        for config in (
            GreedyConfig(**SHORT, **rules),
            BeamConfig(**SHORT, **rules, **BEAMS[1]),
            DiverseConfig(**SHORT, **rules, **GROUPS[0]),
            SamplingConfig(**SHORT, **rules, n_best=2),
        ):
            check(plain(name, seed), config, wishes)


@pytest.mark.slow
@each_row(("name", "seed", "wishes"), SEEDED, ids=lambda value: value if isinstance(value, str) else "")
def test_each_option_of_each_search(name: str, seed: int, wishes: Sequence[Wish]) -> None:
    kinds = ((BeamConfig, BEAMS), (DiverseConfig, GROUPS), (SamplingConfig, SAMPLES))
    for config in (kind(**SHORT, **options) for kind, table in kinds for options in table):
        check(plain(name, seed), config, wishes)


@pytest.mark.slow
@each_row("name", EVERY)
def test_each_architecture(name: str) -> None:
    """All rules at once, in a search that re-orders and drops states and one that expands them."""
    rules = {**SHORT, **RULES[-1]}
    for config in (BeamConfig(**rules, **BEAMS[1]), SamplingConfig(**rules, **SAMPLES[-1])):
        check(plain(name, 3), config, WISHES)


@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_one_group_or_no_diversity_is_beam_search(name: str) -> None:
    """Groups without diversity are the same beam several times; distinct hypotheses are those of one beam."""
    for groups, size, diversity in ((1, 4, 0.5), (3, 2, 0.0)):
        options: dict[str, Any] = {**SHORT, "length_penalty": 0.7, "n_best": size}
        diverse = DiverseConfig(beam_size=groups * size, groups=groups, diversity=diversity, **options)
        assert run(plain(name, 4), diverse) == run(plain(name, 4), BeamConfig(beam_size=size, **options))


def test_groups_begin_with_different_tokens_once_diversity_is_high() -> None:
    """Three groups of one: without diversity they are alike, with much of it no two take the same first token."""
    found = run(plain("transformer", 1), DiverseConfig(beam_size=3, n_best=3, diversity=0.0, **SHORT))
    assert [len(hypotheses) for hypotheses in found] == [1] * len(SOURCES)
    found = run(plain("transformer", 1), DiverseConfig(beam_size=3, n_best=3, diversity=50.0, **SHORT))
    assert [len({tuple(each.tokens[:1]) for each in hypotheses}) for hypotheses in found] == [3] * len(SOURCES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GreedyConfig, BeamConfig, DiverseConfig, SamplingConfig])
def test_translations_keep_the_rules(kind: type[SearchConfig]) -> None:
    """Facts about the translations themselves, without the plain versions."""
    reference = plain("transformer", 1)

    def best(wishes: Sequence[Wish] = NO_WISHES, **rules: float) -> list[list[int]]:
        config = kind(max_length_factor=1.0, max_length_extra=8, **rules)  # type: ignore[arg-type]
        return [found[0].tokens for found in run(reference, config, wishes)]

    assert any(len(tokens) < 7 for tokens in best())
    assert all(len(tokens) >= 7 for tokens in best(min_length=7))
    assert any(len(set(tokens)) < len(tokens) for tokens in best(min_length=7))
    assert all(len(set(tokens)) == len(tokens) for tokens in best(min_length=7, no_repeat_ngram=1))
    common = [max(tokens, key=tokens.count) for tokens in best(min_length=7)]
    wishes = [Wish(prefix=(8, 4), banned=((token,),)) for token in common]
    for token, tokens in zip(common, best(wishes, min_length=7), strict=True):
        assert tokens[:2] == [8, 4]
        assert token not in tokens[2:]
    for length in (2, 3, 4):
        phrases = [tuple(tokens[1 : 1 + length]) for tokens in best(min_length=7)]
        wishes = [Wish(banned=(phrase,)) for phrase in phrases]
        for phrase, tokens in zip(phrases, best(wishes, min_length=7), strict=True):
            assert phrase not in [tuple(tokens[start : start + length]) for start in range(len(tokens))]


def test_greedy_search_keeps_the_rules() -> None:
    model, batch = plain("transformer", 1).model, collate(SOURCES, SOURCES)
    search = GreedyConfig(min_length=7, no_repeat_ngram=1).build()
    with torch.inference_mode():
        results = search.search(model, batch.source, batch.source_lengths)
    assert all(len(found.tokens) >= 7 for [found] in results)


def test_rules_give_way_when_they_forbid_everything() -> None:
    """Each of the 8 subwords (and `<unk>`) at most once, and at least 9: `</s>` is then allowed."""
    config = GreedyConfig(min_length=9, no_repeat_ngram=1, max_length_extra=20)
    wishes = [Wish(banned=((4,),))] * len(SOURCES)
    for [found] in run(plain("transformer", 1), config, wishes):
        assert (len(found.tokens), found.finished) == (VOCABULARY - 4, True)
