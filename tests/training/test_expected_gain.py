"""Whether more time would have helped, by the scores of validations."""

from tolka.training.expected_gain import expected_gain, gain_text


def test_the_gain_is_what_the_last_third_brought() -> None:
    scores = [(100, 1.0), (200, 5.0), (300, 7.0), (400, 6.0), (500, 8.0), (600, 7.5)]
    assert expected_gain(scores) == 1.0  # 8 at 500, and 7 up to 400
    assert expected_gain([(update, 9.0 - score) for update, score in scores]) == 0.0
    assert expected_gain(scores[:5]) is None


def test_a_gain_counts_from_what_a_reader_would_notice() -> None:
    same = "became {} better in the last third, and as many updates again would do as much"
    assert gain_text(0.3, "chrf", 20.0) == "more time would have helped: chrf " + same.format("0.30")
    assert gain_text(0.29, "bleu", 20.0) == "more time would hardly have helped: bleu " + same.format("0.29")
    assert gain_text(0.05, "nll", 4.0).startswith("more time would have helped")
    assert gain_text(0.03, "nll", 4.0).startswith("more time would hardly have helped")
