"""Sampling: its frequencies, its random numbers, and what is refused."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from known_model import LENGTHS, SOURCE, TABLE, A, B, C, Known
from rows import each_row

from tolka.data.batch import BOS, EOS, collate
from tolka.errors import ConfigError
from tolka.models.transformer import TransformerConfig
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.sampling import SamplingConfig, draw, drawing_probabilities

# The 0.999 quantile of the chi-squared distribution for 1 to 10 degrees of freedom (any table of it).
CRITICAL = [10.828, 13.816, 16.266, 18.467, 20.515, 22.458, 24.322, 26.124, 27.877, 29.588]


def chi_squared(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """The statistic of the counts, of all that is not in `expected` together in one cell more."""
    total = sum(counts.values())
    rest = 1.0 - math.fsum(expected.values())
    cells = [(counts[outcome], total * p) for outcome, p in expected.items()]
    if rest > 1e-9:
        cells.append((total - sum(count for count, _ in cells), total * rest))
    else:
        assert total == sum(count for count, _ in cells), "something was drawn that is impossible"
    assert min(mean for _, mean in cells) >= 5
    statistic = math.fsum((count - mean) ** 2 / mean for count, mean in cells)
    return statistic / CRITICAL[len(cells) - 2]


def sample(config: SamplingConfig, table: dict[int, dict[int, float]] = TABLE) -> Counter[tuple[int, ...]]:
    """Translations of both sentences, counted."""
    found = config.build().search(Known(table), SOURCE, LENGTHS)
    return Counter(tuple(each.tokens) for hypotheses in found for each in hypotheses)


def probabilities(first: dict[int, float], table: dict[int, dict[int, float]]) -> dict[tuple[int, ...], float]:
    """Of all translations of up to two tokens, by the chain's probabilities."""
    one: dict[tuple[int, ...], float] = {(a,): p * table[a].get(EOS, 0.0) for a, p in first.items()}
    two: dict[tuple[int, ...], float] = {
        (a, b): p * q * table[b].get(EOS, 0.0) for a, p in first.items() for b, q in table[a].items() if b != EOS
    }
    return {outcome: p for outcome, p in {**one, **two}.items() if p > 0}


def test_frequencies_are_the_models_probabilities() -> None:
    counts = sample(SamplingConfig(n_best=2000, max_length_extra=30))
    assert chi_squared(counts, probabilities(TABLE[BOS], TABLE)) < 1.0
    wrong = {A: 0.55, B: 0.45}
    assert chi_squared(counts, probabilities(wrong, TABLE)) > 1.0, "the test would not see wrong frequencies"


def tempered(p: dict[int, float], temperature: float) -> dict[int, float]:
    powers = {token: each ** (1 / temperature) for token, each in p.items()}
    return {token: each / math.fsum(powers.values()) for token, each in powers.items()}


FIRST = {A: 0.4, B: 0.3, C: 0.2, EOS: 0.1}
TWO = {A: 0.4 / 0.7, B: 0.3 / 0.7}


@each_row(
    ("options", "expected"),
    [
        ({}, FIRST),
        ({"temperature": 0.5}, tempered(FIRST, 0.5)),
        ({"temperature": 2.0}, tempered(FIRST, 2.0)),
        ({"top_k": 2}, TWO),
        ({"top_k": 1}, {A: 1.0}),
        ({"top_p": 0.39}, {A: 1.0}),
        ({"top_p": 0.41}, TWO),
        ({"epsilon": 0.25}, TWO),
        ({"epsilon": 0.9}, {A: 1.0}),
    ],
)
def test_only_likely_tokens_are_drawn(options: dict[str, float], expected: dict[int, float]) -> None:
    """First tokens with the probabilities FIRST (`</s>` is the least likely), and then `</s>`."""
    counts = sample(
        SamplingConfig(n_best=1500, **options),  # type: ignore[arg-type]
        {BOS: FIRST, A: {EOS: 1.0}, B: {EOS: 1.0}, C: {EOS: 1.0}},
    )
    wanted: dict[tuple[int, ...], float] = {(() if token == EOS else (token,)): p for token, p in expected.items()}
    if len(wanted) == 1:
        assert set(counts) == set(wanted)
    else:
        assert chi_squared(counts, wanted) < 1.0


def test_the_inverse_of_the_cumulative_distribution_at_its_steps() -> None:
    p = torch.tensor([[[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]]], dtype=torch.float64)
    uniform = torch.tensor([[0.0, 0.2499, 0.25, 0.7499, 0.75, 1 - 2**-53]], dtype=torch.float64)
    assert draw(p, uniform).tolist() == [[1, 1, 3, 3, 4, 4]]
    assert draw(p * 3, uniform).tolist() == [[1, 1, 3, 3, 4, 4]]
    assert draw(p.expand(-1, 6, -1), uniform).tolist() == [[1, 1, 3, 3, 4, 4]]


def search(config: SamplingConfig, sources: Sequence[list[int]], wishes: Sequence[Wish] = ()) -> list[list[Hypothesis]]:
    torch.manual_seed(1)
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(40, 40, True).eval()
    batch = collate(sources, sources)
    with torch.inference_mode():
        return config.build().search(model, batch.source, batch.source_lengths, wishes)


def tokens(found: list[Hypothesis]) -> list[list[int]]:
    return [each.tokens for each in found]


def test_a_sentence_s_samples_depend_on_itself_the_seed_and_the_prefix() -> None:
    config = SamplingConfig(n_best=3)
    sources = [[4, 5, 6], [7], [8, 9, 10, 11, 12, 13, 14], [4, 5, 6]]
    together = search(config, sources)
    assert tokens(together[0]) == tokens(together[3])  # whatever its place
    for source, found in zip(sources, together, strict=True):
        assert tokens(search(config, [source])[0]) == tokens(found)
    assert tokens(search(config, sources[::-1])[1]) == tokens(together[2])
    assert tokens(search(SamplingConfig(n_best=3, seed=2), sources)[0]) != tokens(together[0])
    with_prefix = search(config, sources, [Wish(prefix=(4,))] * 4)
    assert [ids[1:] for ids in tokens(with_prefix[0])] != [ids[1:] for ids in tokens(together[0])]
    assert all(ids[0] == 4 for found in with_prefix for ids in tokens(found))


def test_more_samples_contain_the_fewer() -> None:
    few, many = (search(SamplingConfig(n_best=n), [[4, 5, 6]])[0] for n in (2, 9))
    assert len(many) == 9
    assert all(ids in tokens(many) for ids in tokens(few))
    assert [each.score for each in many] == sorted((each.score for each in many), reverse=True)


def test_the_score_is_the_models_log_probability_whatever_the_temperature() -> None:
    for found in SamplingConfig(n_best=4, temperature=3.0, top_k=3).build().search(Known(TABLE), SOURCE, LENGTHS):
        for each in found:
            ids = [BOS, *each.tokens, *([EOS] if each.finished else [])]
            steps = pairwise(ids)
            assert each.score == each.log_probability
            assert each.score == pytest.approx(sum(math.log(TABLE[a][b]) for a, b in steps), abs=1e-4)


@each_row(
    ("options", "complaint"),
    [
        ({"temperature": 0.0}, "search.temperature is 0: search=greedy takes"),
        ({"temperature": -1.0}, r"search.temperature \(-1.0\) must be at least"),
        ({"top_k": -1}, r"search.top_k \(-1\) must be 0 \(off\) or more"),
        ({"top_p": 0.0}, r"search.top_p \(0.0\) must be above 0"),
        ({"top_p": 1.5}, r"search.top_p \(1.5\) must be above 0"),
        ({"epsilon": -0.1}, r"search.epsilon \(-0.1\) must be at least 0 and below 1"),
        ({"seed": -1}, r"search.seed \(-1\) must be at least 0"),
        ({"n_best": 0}, r"search.n_best \(0\) must be at least 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        SamplingConfig(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{"top_p": 0.9}, {"top_p": 0.3}, {"top_k": 7}, {"top_k": 5000}, {"top_p": 0.8, "top_k": 40, "epsilon": 0.001}],
)
def test_what_is_left_is_what_a_full_sort_leaves(options: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of peaked and flat distributions, of equal probabilities and of a certain token; only flat rows are sorted."""
    torch.manual_seed(3)
    logits = torch.randn(5, 2, 6000) * torch.tensor([9.0, 4.0, 0.5, 0.0, 300.0])[:, None, None]
    config = SamplingConfig(**options)  # type: ignore[arg-type]
    p = logits.log_softmax(dim=-1).double().softmax(dim=-1)
    rows, real = [], torch.Tensor.sort

    def counted(values: torch.Tensor, *given: Any, **named: Any) -> Any:
        rows.append(values[..., 0].numel())
        return real(values, *given, **named)

    monkeypatch.setattr(torch.Tensor, "sort", counted)
    found = drawing_probabilities(config, logits.log_softmax(dim=-1))
    monkeypatch.undo()
    assert sum(rows) <= 6, "of the flat distributions, and of the one whose others are 0"
    for row, values in zip(found.flatten(0, 1), p.flatten(0, 1), strict=True):
        ordered = values.sort(descending=True, stable=True)
        before = ordered.values.cumsum(dim=0) - ordered.values
        keep = ordered.values >= min(config.epsilon, float(ordered.values[0]))
        keep &= before < config.top_p if config.top_p < 1 else True
        keep[config.top_k or 6000 :] = False
        assert row.nonzero()[:, 0].tolist() == sorted(ordered.indices[keep & (ordered.values > 0)].tolist()), int(
            keep.sum()
        )
        assert torch.allclose(row[row > 0], values[row > 0], rtol=1e-12)
