"""Beam search with terms, beside every possible translation, and the automaton beside a plain look at the tokens."""

import itertools
import random
from collections.abc import Iterator, Sequence
from functools import cache

import pytest
import torch
from oracle import perturb
from plain_search import NEVER, Found, PlainSearch, limit, scored
from rows import each_row

from tolka.data.batch import BOS, EOS, collate
from tolka.errors import DataError
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.search.beam import BeamConfig
from tolka.search.constraints.term_automaton import TermAutomaton
from tolka.search.constraints.terms import with_fewer
from tolka.search.hypothesis import NO_WISH, Hypothesis, Ids, Wish

VOCABULARY = 8
SOURCES = [[4, 5, 6], [7, 4], [5], [6, 6, 7, 5]]
SHORT = {"max_length_factor": 0.0, "max_length_extra": 4}  # five tokens, </s> included
WISHES = [
    Wish(terms=(((4, 5),),)),
    Wish(terms=(((5, 6), (7,)), ((6, 6),))),
    Wish(terms=(((5, 6, 5), (BOS, 7, 7)),)),
    Wish(terms=(((4,),), ((5,),), ((6, 7), (7, 6)))),
    NO_WISH,
    Wish(terms=(((5, 5),), ((5, 5, 4),))),
    Wish(prefix=(6,), terms=(((6, 4),), ((4,), (7, 7, 7)))),
    Wish(terms=(((4, 4), (5, 5)),), banned=((4, 4, 5), (6,))),
]
MODELS = {
    "transformer": TransformerConfig(d_model=16, heads=2, layers=1),
    "lstm": RnnConfig(d_model=16),
}


@cache
def plain(name: str, seed: int) -> PlainSearch:
    torch.manual_seed(seed)
    model = MODELS[name].build(VOCABULARY, VOCABULARY, True).double().eval()
    perturb(model, seed)
    return PlainSearch(model)


def contains(tokens: Sequence[int], alternative: Ids) -> bool:
    begun = [BOS, *tokens]
    return any(begun[i : i + len(alternative)] == list(alternative) for i in range(len(begun)))


def meets(tokens: Sequence[int], wish: Wish) -> bool:
    return all(any(contains(tokens, each) for each in alternatives) for alternatives in wish.terms)


def every_translation(reference: PlainSearch, config: BeamConfig, source: list[int], wish: Wish) -> Iterator[Found]:
    """Every finished translation within the limit, with its log-probability under the rules."""
    begun: list[tuple[list[int], float]] = [([], 0.0)]
    while begun:
        tokens, total = begun.pop()
        log_p = reference.next_log_p(config, source, tokens, wish)
        if log_p[EOS] > NEVER:
            yield tokens, total + log_p[EOS], True
        if len(tokens) < limit(config, source) - 1:
            begun += [
                ([*tokens, token], total + value) for token, value in enumerate(log_p) if token > EOS and value > NEVER
            ]


def best_of_all(reference: PlainSearch, config: BeamConfig, source: list[int], wish: Wish) -> tuple[list[int], float]:
    rated = [
        (each[0], scored(each, config.length_penalty, config.length_normalization))
        for each in every_translation(reference, config, source, wish)
        if meets(each[0], wish)
    ]
    return max(rated, key=lambda item: item[1])


def run(
    reference: PlainSearch, config: BeamConfig, sources: Sequence[list[int]], wishes: Sequence[Wish]
) -> list[list[Hypothesis]]:
    batch = collate(list(sources), list(sources))
    with torch.inference_mode():
        return config.build().search(reference.model, batch.source, batch.source_lengths, wishes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("transformer", {}),
        ("lstm", {}),
        ("transformer", {"length_normalization": "none"}),
        ("transformer", {"no_repeat_ngram": 2, "min_length": 2}),
    ],
)
def test_a_wide_beam_finds_the_best_of_all_translations(name: str, settings: dict[str, object]) -> None:
    """All wishes in one batch, and each alone."""
    reference = plain(name, 1)
    for source in SOURCES:
        reference.compute(source, list(itertools.product(range(EOS + 1, VOCABULARY), repeat=4)))
    config = BeamConfig(beam_size=2000, **SHORT, **settings)  # type: ignore[arg-type]
    sources = [SOURCES[number % len(SOURCES)] for number in range(len(WISHES))]
    together = run(reference, config, sources, WISHES)
    for source, wish, found in zip(sources, WISHES, together, strict=True):
        tokens, score = best_of_all(reference, config, source, wish)
        assert (found[0].tokens, found[0].finished) == (tokens, True)
        assert found[0].score == pytest.approx(score, abs=1e-4)
        [alone] = run(reference, config, [source], [wish])
        assert alone[0].tokens == tokens


@pytest.mark.slow
@each_row("name", MODELS)
@each_row("beam_size", [1, 3, 8])
@each_row("seed", [1])
def test_every_hypothesis_of_a_small_beam_has_all_terms(name: str, beam_size: int, seed: int) -> None:
    reference = plain(name, seed)
    config = BeamConfig(beam_size=beam_size, n_best=min(beam_size, 3), **SHORT)  # type: ignore[arg-type]
    sources = [SOURCES[(seed + number) % len(SOURCES)] for number in range(len(WISHES))]
    for source, wish, found in zip(sources, WISHES, run(reference, config, sources, WISHES), strict=True):
        assert found
        _, best = best_of_all(reference, config, source, wish)
        for hypothesis in found:
            assert meets(hypothesis.tokens, wish)
            assert hypothesis.score <= best + 1e-4 or not hypothesis.finished
            value = sum(
                reference.next_log_p(config, source, hypothesis.tokens[:place], wish)[token]
                for place, token in enumerate([*hypothesis.tokens, *[EOS] * hypothesis.finished])
            )
            assert hypothesis.log_probability == pytest.approx(value, abs=1e-4)
        [alone] = run(reference, config, [source], [wish])
        assert [each.tokens for each in alone] == [each.tokens for each in found]
        assert len({tuple(each.tokens) for each in found}) == len(found)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize("name", MODELS)
def test_sentences_without_terms_are_as_in_plain_beam_search(name: str) -> None:
    reference = plain(name, 2)
    config = BeamConfig(beam_size=3, **SHORT)  # type: ignore[arg-type]
    expected = run(reference, config, SOURCES, ())
    mixed = run(reference, config, [*SOURCES, [4, 4]], [NO_WISH] * len(SOURCES) + [WISHES[1]])
    for found, wanted in zip(mixed[:-1], expected, strict=True):
        assert [each.tokens for each in found] == [each.tokens for each in wanted]
        assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_terms_that_do_not_fit_are_left_out_and_the_others_met(name: str) -> None:
    """Five tokens at most, </s> included: what does not fit is given up, so that the translation is finished."""
    reference = plain(name, 3)
    config = BeamConfig(beam_size=5, **SHORT)  # type: ignore[arg-type]
    long = ((4, 5, 6, 7, 4, 4),)
    wishes = [Wish(terms=(long,)), Wish(terms=(((5,),), long)), Wish(terms=(((4, 4, 4),), ((7, 7, 7),)))]
    one, two, three = run(reference, config, SOURCES[:3], wishes)
    assert [each.tokens for each in one] == [each.tokens for each in run(reference, config, SOURCES[:1], ())[0]]
    assert two[0].finished
    assert 5 in two[0].tokens
    [four] = run(reference, config, SOURCES[3:], [Wish(terms=(long, ((6,),), ((4, 7),), ((7, 5, 5, 5, 5, 5),), long))])
    assert four[0].finished
    assert meets(four[0].tokens, Wish(terms=(((6,),), ((4, 7),))))
    assert three[0].finished
    assert contains(three[0].tokens, (4, 4, 4)) != contains(three[0].tokens, (7, 7, 7))


@pytest.mark.slow
def test_the_automaton_knows_what_a_plain_look_finds() -> None:
    """Random terms, many of them overlapping, and random hypotheses."""
    chance = random.Random(5)
    for _ in range(60):
        terms = [
            [
                (BOS,) * (chance.random() < 0.2) + tuple(chance.choices((4, 5, 6), k=chance.randint(1, 4)))
                for _ in range(chance.randint(1, 3))
            ]
            for _ in range(chance.randint(1, 4))
        ]
        others = [[(7,)]]
        automaton = TermAutomaton.of([others, terms], VOCABULARY, torch.device("cpu")).select(torch.tensor([1]))
        sizes = [min(len(each) - (each[0] == BOS) for each in alternatives) for alternatives in terms]
        for _ in range(20):
            tokens = chance.choices((3, 4, 5, 6, 7), k=chance.randint(1, 8))
            state, missing = automaton.start[:, None], automaton.missing
            for length, token in enumerate(tokens, start=1):
                state = automaton.next(state, torch.tensor([[token]]))
                missing = missing & ~automaton.complete[state]
                met = [any(contains(tokens[:length], each) for each in alternatives) for alternatives in terms]
                assert (~missing[0, 0]).tolist()[: len(terms)] == met
                begun = [BOS, *tokens[:length]]
                under_way = [
                    sizes[number] - (len(each) - count)
                    for number, alternatives in enumerate(terms)
                    for each in alternatives
                    for count in range(1, len(each) + 1)
                    if not met[number] and begun[-count:] == list(each[:count])
                ]
                expected = sum(size for size, is_met in zip(sizes, met, strict=True) if is_met)
                assert int(automaton.met_tokens(state, missing)) == expected + max([0, *under_way])


@pytest.mark.parametrize("term", [((),), ((BOS,),), ((4, EOS),), ((4, BOS),)])
def test_terms_of_no_subwords_are_errors(term: tuple[Ids, ...]) -> None:
    with pytest.raises(DataError, match="no subwords, or a special symbol"):
        run(plain("lstm", 1), BeamConfig(), SOURCES[:1], [Wish(terms=(term,))])


def test_the_automaton_grows_with_the_terms_and_not_with_their_square() -> None:
    """The first tokens of all terms are kept once for a sentence, not once for each state."""
    terms = [[(100 + term, 500 + term, 900 + term), (100 + term, 1300 + term)] for term in range(200)]
    automaton = TermAutomaton.of([terms, terms[:3]], 2000, torch.device("cpu"))
    states = len(automaton.progress)
    assert len(automaton.keys) < states
    assert automaton.openings.shape == (2, 200)
    state = automaton.next(automaton.root[:, None], torch.tensor([[100], [101]]))
    assert sorted(automaton.moves(state)[0, 0].tolist()) == [500, 1300]


def searches(monkeypatch: pytest.MonkeyPatch, reference: PlainSearch, wish: Wish) -> tuple[list[Hypothesis], list[int]]:
    """What is found for a wish, and the number of terms in each of the searches for it."""
    counts, real = [], TermAutomaton.of.__func__  # type: ignore[attr-defined]

    def counted(cls: type[TermAutomaton], terms: Sequence[object], *others: object) -> TermAutomaton:
        counts.append(len(terms[0]))  # type: ignore[arg-type]
        return real(cls, terms, *others)  # type: ignore[no-any-return]

    monkeypatch.setattr(TermAutomaton, "of", classmethod(counted))
    config = BeamConfig(beam_size=5, **SHORT)  # type: ignore[arg-type]
    [found] = run(reference, config, SOURCES[:1], [wish])
    return found, counts


def test_terms_that_are_banned_take_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alternative with a banned phrase in it is left out before; a phrase in the prefix is not banned there."""
    terms = (((4, 5, 6), (7, 4, 5)), ((6, 4, 5),), ((7, 7), (4, 5)))
    found, counts = searches(monkeypatch, plain("lstm", 1), Wish(terms=terms, banned=((4, 5), (6, 6))))
    assert counts == [1]
    assert all(contains(each.tokens, (7, 7)) for each in found)
    wish = Wish(prefix=(4, 5), terms=(((4, 5, 6),),), banned=((4, 5),))
    found, counts = searches(monkeypatch, plain("lstm", 1), wish)
    assert counts == [1]
    assert found[0].tokens[:3] == [4, 5, 6]


def test_the_number_of_searches_is_logarithmic_in_the_terms_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 15 terms fits by itself, but no two of them: subwords are banned that would have to come between them."""
    chance = random.Random(3)
    long = [tuple(chance.choices((4, 5, 6, 7), k=6)) for _ in range(15)]
    found, counts = searches(monkeypatch, plain("lstm", 1), Wish(terms=(((5,),), *((each,) for each in long))))
    assert len(counts) <= 5
    assert found[0].finished
    assert 5 in found[0].tokens
    pairs = [((first, second),) for first in (4, 5, 6, 7) for second in (4, 5, 6, 7)][:15]
    _, counts = searches(monkeypatch, plain("lstm", 1), Wish(terms=tuple(pairs)))
    assert len(counts) <= 5
    assert counts[0] == 15


def test_the_size_of_a_term_does_not_count_the_beginning() -> None:
    """`<s>` is no token: four tokens at the beginning fit before `</s>`, and so does a fifth that another term has."""
    wish = Wish(terms=(((BOS, 4, 5, 6, 7),), ((7,),)))
    assert with_fewer(wish, [0, 1], 5) == Wish(terms=(((7,),),))
    three = Wish(terms=(((BOS, 4, 5),), ((6, 7, 6),), ((7,),)))
    assert with_fewer(three, [0, 1, 2], 99).terms == (((7,),),)
    assert with_fewer(Wish(terms=(((BOS, 4, 5),), ((6, 7),))), [0, 1], 99).terms == (((6, 7),),)
    assert with_fewer(Wish(terms=(((BOS, 4),), ((6, 7),))), [0, 1], 99).terms == (((BOS, 4),),)


def test_scores_that_are_not_finite_are_no_result_whatever_the_number_of_terms() -> None:
    """Sentences with 3 terms and with 1 in one batch."""
    torch.manual_seed(1)
    model = MODELS["lstm"].build(VOCABULARY, VOCABULARY, True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    batch = collate(SOURCES[:2], SOURCES[:2])
    with torch.inference_mode():
        found = BeamConfig().build().search(model, batch.source, batch.source_lengths, [WISHES[3], WISHES[0]])
    assert found == [[], []]
