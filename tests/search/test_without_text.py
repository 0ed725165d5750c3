"""No search chooses what stands for no text, as tags of languages do, however likely the model holds it to be."""

import itertools
import math

import pytest
import torch
from known_model import LENGTHS, SOURCE, A, B, Known
from known_model import C as TAG

from tolka.data.batch import BOS, EOS
from tolka.models.tagged import Tagged
from tolka.search.hypothesis import NO_WISH, Wish
from tolka.search.options import BeamConfig, DiverseConfig, GreedyConfig, MbrConfig, SamplingConfig, SearchConfig
from tolka.tokenizer.language_tags import Tags

# Nine times in ten a tag, and after it only tags, to the limit.
TABLE = {
    BOS: {TAG: 0.9, A: 0.06, B: 0.04},
    A: {TAG: 0.9, EOS: 0.036, A: 0.034, B: 0.03},
    B: {TAG: 0.9, EOS: 0.09, A: 0.01},
    TAG: {TAG: 0.98, A: 0.01, EOS: 0.01},
}
LIMIT = 4
SEARCHES: list[tuple[SearchConfig, Wish]] = [
    (GreedyConfig(), NO_WISH),
    (GreedyConfig(min_length=2), NO_WISH),  # by its rules it needs log-probabilities
    (BeamConfig(beam_size=3, n_best=3), NO_WISH),
    (BeamConfig(beam_size=3), Wish(terms=(((B, A),),))),
    (BeamConfig(beam_size=3), Wish(banned=((A,),))),
    (DiverseConfig(beam_size=4, groups=2, n_best=4), NO_WISH),
    (SamplingConfig(n_best=16), NO_WISH),
    (SamplingConfig(n_best=16, top_k=2), NO_WISH),
    (SamplingConfig(n_best=16, top_p=0.5), NO_WISH),
    (MbrConfig(samples=16), NO_WISH),
    (MbrConfig(samples=4, candidates="beam"), NO_WISH),
]


@pytest.mark.parametrize("target", [(), (TAG,)])
def test_a_tag_stands_first_or_nowhere(target: tuple[int, ...]) -> None:
    """Forced at the beginning, it is what the decoder reads first; and it is in no hypothesis."""
    model = Tagged(Known(TABLE | ({TAG: TABLE[BOS]} if target else {})), Tags(target=target, never=(TAG,)))
    for config, wish in SEARCHES:
        limited = type(config)(**{**vars(config), "max_length_factor": 0.0, "max_length_extra": LIMIT})
        for found in limited.build().search(model, SOURCE, LENGTHS, [wish] * 2):
            assert found, config
            for each in found:
                assert TAG not in each.tokens
                assert not any(term not in "".join(map(str, each.tokens)) for term in ["54"] if wish.terms)
    assert model.without_text is not None
    assert model.without_text.tolist() == [TAG]
    # And it would be there.
    [[free], _] = GreedyConfig(max_length_extra=LIMIT).build().search(Known(TABLE), SOURCE, LENGTHS)
    assert set(free.tokens) == {TAG}


def test_a_wide_beam_finds_the_best_of_all_sequences_without_it() -> None:
    """Their probabilities are the model's: those of tags are not shared out among the others."""
    config = BeamConfig(
        beam_size=64,
        n_best=64,
        max_length_factor=0.0,
        max_length_extra=LIMIT - 1,
        length_normalization="none",
        length_penalty=0.0,
    )
    model = Tagged(Known(TABLE), Tags(never=(TAG,)))
    found = config.build().search(model, SOURCE, LENGTHS, ())[0]
    expected = {}
    for length in range(LIMIT):
        for tokens in itertools.product((A, B), repeat=length):
            path = [BOS, *tokens, EOS]
            p = math.prod(TABLE[last].get(token, 0.0) for last, token in itertools.pairwise(path))
            if p:
                expected[tokens] = math.log(p)
    assert {tuple(each.tokens): each.log_probability for each in found if each.finished} == pytest.approx(expected)
    assert tuple(found[0].tokens) == max(expected, key=expected.__getitem__)


def test_scores_of_given_translations_are_the_model_s() -> None:
    model, free = Tagged(Known(TABLE), Tags(never=(TAG,))), Known(TABLE)
    model.start(SOURCE, LENGTHS)
    torch.testing.assert_close(model.logits(free.table), free.logits(free.table))
