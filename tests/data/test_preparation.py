"""From two files to ids: what is kept is what the files say, and nothing is made twice."""

import gzip
import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from killed_worker import killed

from tolka.data import preparation as prepare_module
from tolka.data.buckets import BatchingConfig
from tolka.data.preparation import REJECTED, Order, Prepared, prepare
from tolka.data.shards import Shard, Task
from tolka.errors import DataError, TolkaError
from tolka.system.progress import Say, silent
from tolka.text.cleaning.cleaner import Tally
from tolka.text.cleaning.steps import RULES, CleaningConfig, apply_changes, changes_of
from tolka.text.corpora.files import FilesConfig
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import TokenizerConfig


def prepared(
    corpus: Path,
    *,
    max_length: int = 64,
    vocab_size: int = 320,
    sample: int = 0,
    cleaning: dict[str, Any] | None = None,
    processes: int = 1,
    cache: str = "cache",
    say: Say = silent,
    **options: object,
) -> Prepared:
    files: dict[str, Any] = {"train": ["train"], "valid": ["valid"], **options}
    config = FilesConfig(source="xa", target="xb", root=str(corpus), **files)
    batching = BatchingConfig(tokens=512, max_length=max_length)
    tokenizer = TokenizerConfig(vocab_size=vocab_size, sample=sample)
    found = config.open()
    held_out = [pair for source in (*found.valid, *found.tests) for pair in source.read()]
    order = Order(
        found, CleaningConfig(**cleaning or {}), tokenizer, batching, held_out, temperature=config.temperature
    )
    return prepare(order, corpus / cache, processes, say)


def texts(found: Prepared) -> list[str]:
    return found.tokenizer.decode_target([found.store.target(i).tolist() for i in range(len(found.store))])


def add(corpus: Path, source: str, target: str) -> None:
    for language, line in (("xa", source), ("xb", target)):
        with (corpus / f"train.{language}").open("a", encoding="utf-8", newline="") as stream:
            stream.write(line + "\n")


def test_the_store_holds_the_text_in_order(corpus: Path) -> None:
    found = prepared(corpus)
    assert texts(found) == (corpus / "train.xb").read_text().splitlines()
    assert found.tally == Tally(kept=60)


def test_a_blank_line_drops_its_pair_and_no_other(corpus: Path) -> None:
    before = (corpus / "train.xb").read_text().splitlines()
    add(corpus, "", "orphan")
    add(corpus, "ferry .", "fjon .")
    found = prepared(corpus)
    assert texts(found) == [*before, "fjon ."]
    assert found.tally == Tally(61, Counter({"blank source": 1}))


def test_long_lines_are_counted_by_reason(corpus: Path) -> None:
    add(corpus, "a" * 100_000, "fjon")
    add(corpus, "ferry", "fjon " * 65)
    found = prepared(corpus)
    assert found.tally == Tally(60, Counter({"over 2000 characters": 1, "over 64 tokens": 1}))
    rejected = [line.split("\t") for line in (found.folder / REJECTED).read_text("utf-8").splitlines()]
    assert [row[0] for row in rejected] == ["over 2000 characters", "over 64 tokens"]
    assert rejected[1][1:] == ["ferry", ("fjon " * 65).strip()]


def test_a_piece_limit_is_a_ceiling_that_may_be_reached(corpus: Path) -> None:
    found = prepared(corpus)
    longest = max(found.store.source_lengths.max(), found.store.target_lengths.max())
    assert prepared(corpus, max_length=int(longest)).tally.kept == 60
    assert prepared(corpus, max_length=int(longest) - 1).tally.kept < 60


def test_what_was_made_is_reused_until_text_or_settings_change(corpus: Path) -> None:
    first = prepared(corpus)
    again = prepared(corpus)
    assert (first.reused, again.reused, first.folder) == (False, True, again.folder)
    others = [
        prepared(corpus, max_length=63),
        prepared(corpus, vocab_size=310),
        prepared(corpus, cleaning={"duplicates": "exact"}),
    ]
    add(corpus, "ferry .", "fjon .")
    others.append(prepared(corpus))
    assert not any(other.reused for other in others)
    assert len({first.folder, *(other.folder for other in others)}) == 5


def test_text_that_other_rules_of_cleaning_prepared_is_prepared_again(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strip, keep = {"control": "strip"}, {"control": "keep"}
    before = [prepared(corpus, cleaning=cleaning).folder for cleaning in (strip, keep)]
    monkeypatch.setattr(prepare_module, "RULES", {"control": RULES["control"] + 1})
    after = [prepared(corpus, cleaning=cleaning).folder for cleaning in (strip, keep)]
    assert (before[0] == after[0], before[1] == after[1]) == (False, True)


def test_what_the_rules_of_cleaning_do_has_their_version() -> None:
    """If this fails because a rule has changed, raise its version."""
    odd = "".join(map(chr, [*range(32), *range(0x7F, 0xB0), *range(0x2000, 0x2070), 0xFEFF]))
    text = f"a<b> &amp;lt;i&amp;gt;x&amp;lt;/i&amp;gt; &nbsp;1 000,5 {odd}\u200bង\u200bក \u200eא\u200e"
    made = []
    for changes in ({"control": "strip"}, {"markup": "strip"}):
        changed = apply_changes(Pair(text, text), changes_of(CleaningConfig(**changes)))  # type: ignore[arg-type]
        made.append(hashlib.sha256(changed.source.encode()).hexdigest()[:8])
    table = files("tolka.text").joinpath("typography.yaml").read_bytes()
    made.append(hashlib.sha256(table).hexdigest()[:8])
    assert made == ["d2757426", "945e6e3a", "f02de512"]
    assert RULES == {"control": 2, "markup": 2, "numbers": 2, "script": 2, "language": 2, "typography": 1}


def test_gzip_and_plain_text_give_the_same_ids(corpus: Path) -> None:
    plain = prepared(corpus)
    for language in ("xa", "xb"):
        path = corpus / f"train.{language}"
        (corpus / f"train.{language}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = prepared(corpus)
    assert packed.store.source_ids.tolist() == plain.store.source_ids.tolist()
    assert packed.store.target_ids.tolist() == plain.store.target_ids.tolist()


def test_nothing_left_after_cleaning(corpus: Path) -> None:
    (corpus / "train.xa").write_text("\n \n")
    (corpus / "train.xb").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"no training pair is left after cleaning \(2 pairs, 0 kept, 2 left out"):
        prepared(corpus)
    assert not list((corpus / "cache").iterdir())


def test_nothing_short_enough(corpus: Path) -> None:
    with pytest.raises(DataError, match=r"no training pair fits batching.max_length \(1\)"):
        prepared(corpus, max_length=1)


def test_an_error_in_the_middle_leaves_no_store(corpus: Path) -> None:
    with (corpus / "train.xa").open("ab") as stream:
        stream.write(b"k\xe4ttle\n")
    with (corpus / "train.xb").open("ab") as stream:
        stream.write(b"mirka\n")
    with pytest.raises(DataError, match=r"train.xa:61: not UTF-8 \(byte 0xe4 at column 2\)"):
        prepared(corpus)
    assert not list((corpus / "cache").iterdir())


def test_a_damaged_report_says_what_to_delete(corpus: Path) -> None:
    (prepared(corpus).folder / "report.json").write_text('{"counts": {}}')
    with pytest.raises(DataError, match=r"report.json is damaged .*; delete the folder"):
        prepared(corpus)


def test_two_runs_at_once_make_a_store_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first to come makes it; the second waits, and finds it made."""
    made, waits = [], Event()
    make = prepare_module._Workshop.make

    def making(workshop: Any, folder: Path) -> None:
        made.append(folder)
        assert waits.wait(timeout=60)
        make(workshop, folder)

    monkeypatch.setattr(prepare_module._Workshop, "make", making)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: prepared(corpus, say=lambda message: waits.set()), range(2))
    assert len(made) == 1
    assert texts(first) == texts(second)
    assert [path.name for path in (corpus / "cache").iterdir()] == [first.folder.name]


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_module, "SHARD_PAIRS", 7)
    monkeypatch.setattr(prepare_module, "_PAIRS_PER_PROCESS", 1)


def same(first: Prepared, second: Prepared) -> None:
    for name in ("report.json", "source.ids", "source.offsets", "target.ids", "target.offsets", REJECTED):
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes(), name


@pytest.mark.slow
def test_shards_and_processes_change_nothing(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Duplicates stand in other shards than what they repeat; two lines are blank, one is too long."""
    lines = [(corpus / f"train.{side}").read_text().splitlines() for side in ("xa", "xb")]
    for number in (3, 40):
        add(corpus, lines[0][number], lines[1][number])
    add(corpus, "", "orphan")
    add(corpus, "ferry", "fjon " * 65)
    cleaning = {"duplicates": "exact", "control": "strip"}
    other = tmp_path / "other"
    other.mkdir()
    for name in ("train.xa", "train.xb", "valid.xa", "valid.xb"):
        (other / name).write_bytes((corpus / name).read_bytes())
    at_once = prepared(corpus, cleaning=cleaning)
    monkeypatch.setattr(prepare_module, "SHARD_PAIRS", 7)
    monkeypatch.setattr(prepare_module, "_PAIRS_PER_PROCESS", 1)
    in_shards = prepared(other, cleaning=cleaning, processes=3)
    assert at_once.tally.dropped["duplicate"] >= 2
    assert at_once.tally.dropped["blank source"] == at_once.tally.dropped["over 64 tokens"] == 1
    for name in ("source.ids", "source.offsets", "target.ids", "target.offsets", "report.json"):
        assert (at_once.folder / name).read_bytes() == (in_shards.folder / name).read_bytes(), name
    rejected = [sorted((found.folder / REJECTED).read_text().splitlines()) for found in (at_once, in_shards)]
    assert rejected[0] == rejected[1]
    assert len(rejected[0]) == at_once.tally.dropped.total()


@pytest.mark.parametrize("stage", ["clean", "train_tokenizer", "encode", "deliver"])
def test_an_interrupted_preparation_goes_on(
    corpus: Path, stage: str, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = list[str]()
    uninterrupted = prepared(corpus, cache="elsewhere")

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepare_module._Workshop, stage, interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepared(corpus)
    with monkeypatch.context() as patch:
        patch.setattr(Shard, "write", interrupt)  # the text is not read a second time
        again = prepared(corpus, say=notes.append)
    assert notes == ["continuing with what was prepared before an interruption"]
    same(uninterrupted, again)
    assert not again.reused
    assert [path.name for path in (corpus / "cache").iterdir()] == [again.folder.name]


def test_interrupted_inside_a_stage(corpus: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    uninterrupted = prepared(corpus, cache="elsewhere")
    encode, calls = Shard.encode, []

    def third_fails(shard: Shard, *rest: Any) -> None:
        calls.append(shard.folder.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        encode(shard, *rest)

    monkeypatch.setattr(Shard, "encode", third_fails)
    with pytest.raises(KeyboardInterrupt):
        prepared(corpus)
    same(uninterrupted, prepared(corpus))
    assert len(calls) == len(set(calls)) + 1 == 10  # nine shards; only the third was begun twice


def test_a_process_that_ends_too_soon_is_one_line_and_the_next_start_goes_on(
    corpus: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(prepare_module, "work_on", killed)
        with pytest.raises(TolkaError, match=r"ended with -9: killed; was there enough .* The same command continues"):
            prepared(corpus, processes=2)
    assert prepared(corpus, processes=1).tally.kept == 60


@pytest.mark.slow
def test_workers_do_not_import_what_lies_about(
    corpus: Path, tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bz2.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert prepared(corpus, processes=2).tally.kept == 60


def test_few_pairs_are_prepared_without_starting_a_process(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.system.workers._Worker", None)
    assert prepared(corpus, train=["train", "valid"], processes=2).tally.kept == 68


def test_what_breaks_off_while_the_tokenizer_learns_is_no_fault_of_the_text(
    corpus: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(shard: Shard) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Shard, "pairs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepared(corpus)
    assert list((corpus / "cache").glob(".*.work"))


def test_a_shard_that_lost_text_is_noticed(tmp_path: Path) -> None:
    shard = Shard(tmp_path / "shard")
    shard.write([Pair("a", "b"), Pair("c", "d")])
    shard.clean(Task(CleaningConfig(), 9, frozenset()))
    (shard.folder / "text").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"is damaged: delete"):
        list(shard.pairs())
    with pytest.raises(AssertionError, match="line feed"):
        Shard(tmp_path / "other").write([Pair("a\nb", "c")])


def test_held_out_sentences_can_be_kept_out(corpus: Path) -> None:
    source, target = ((corpus / f"valid.{side}").read_text().splitlines()[2] for side in ("xa", "xb"))
    add(corpus, source.upper(), target.replace(" .", "!"))  # the pair, but for case and marks
    add(corpus, source, "mirka tolo selk .")
    assert prepared(corpus).tally.kept == 62
    assert prepared(corpus, cleaning={"leaks": "pair"}).tally == Tally(61, Counter({"held-out pair": 1}))
    assert prepared(corpus, cleaning={"leaks": "source"}).tally == Tally(60, Counter({"held-out source": 2}))


def test_the_store_knows_its_parts(corpus: Path) -> None:
    (corpus / "more.xa").write_text("ferry .\n\nkettle .\n")
    (corpus / "more.xb").write_text("fjon .\nx\nmirka .\n")
    found = prepared(corpus, train=["more", "train"])
    assert found.parts == [2, 60]
    assert texts(found)[:3] == ["fjon .", "mirka .", texts(prepared(corpus))[0]]


def test_the_tokenizer_learns_from_a_fixed_sample(corpus: Path, small_shards: None) -> None:
    found, again = prepared(corpus, sample=20), prepared(corpus, sample=20, cache="elsewhere")
    assert found.remarks[0] == "the tokenizer learns from 20 of 60 pairs (tokenizer.sample)"
    assert found.tokenizer.digests == again.tokenizer.digests != prepared(corpus, sample=0).tokenizer.digests
    assert prepared(corpus, sample=60).tokenizer.digests == prepared(corpus, sample=0).tokenizer.digests


def test_a_sample_has_exactly_so_many_in_their_order(tmp_path: Path) -> None:
    shards = []
    for number in range(5):
        shards.append(Shard(tmp_path / str(number)))
        shards[-1].write([Pair(f"{number} {i}", "x") for i in range(number * 3)])
        shards[-1].clean(Task(CleaningConfig(), 9, frozenset()))
    for wanted in (1, 7, 30):
        drawn = [pair.source for pair in prepare_module._sample(shards, wanted)]
        assert len(drawn) == len(set(drawn)) == wanted
        assert drawn == sorted(drawn, key=lambda text: [int(n) for n in text.split()])
    often = Counter(pair.source for pair in prepare_module._sample(shards, 67))
    assert len(often) == 30
    assert sorted(often.values()) == [2] * 23 + [3] * 7


def test_with_a_temperature_the_tokenizer_learns_small_texts_as_often_as_an_epoch_draws_them(corpus: Path) -> None:
    (corpus / "rare.xa").write_text("qwqzz vvqx .\n" * 2)
    (corpus / "rare.xb").write_text("vvqx qwqzz .\nqwqzz .\n")

    def coded(temperature: float) -> Prepared:
        return prepared(corpus, train=["train", "rare"], cache=f"t{temperature}", temperature=temperature)

    by_size, even = coded(1.0), coded(1000.0)
    assert by_size.parts == even.parts == [60, 2]
    length = {id(each): len(each.tokenizer.encode_source(["qwqzz"])[0]) for each in (by_size, even)}
    assert length[id(even)] < length[id(by_size)]
    assert by_size.tokenizer.digests == prepared(corpus, train=["train", "rare"], cache="again").tokenizer.digests
