"""The translator with a model that copies its source, so that every output is known."""

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from copying_model import TOKENIZER, Copy, facts, translator
from rows import each_row
from torch import Tensor

from tolka.engines.options import DecodingConfig, resolved_split
from tolka.engines.torch_engine import TorchEngine
from tolka.models.base import DecoderState
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.system.threads import side_by_side
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.translation.request import Request
from tolka.translation.translator import Translator


@pytest.mark.parametrize("search", [GreedyConfig(), BeamConfig(beam_size=3)])
def test_one_out_for_each_in_and_in_order(search: SearchConfig) -> None:
    texts = ["blue fish swim", "", "the old boat drifts home. red birds sing.", "frogs", "   ", "달이 뜹니다", "frogs"]
    expected = [text.strip() for text in texts]
    assert translator(search)(texts) == expected


def test_nothing_in_nothing_out() -> None:
    assert translator()([]) == []
    assert translator()(["", " "]) == ["", ""]


def test_blank_texts_never_reach_the_model() -> None:
    made = translator()
    made(["", "frogs", "\t"])
    assert [len(batch) for batch in made.engine.model.batches] == [1]  # type: ignore[union-attr]


@pytest.mark.parametrize(("search", "ceiling"), [(GreedyConfig(), 90), (BeamConfig(beam_size=3), 30)])
def test_batches_keep_to_the_ceiling_hypotheses_counted(search: SearchConfig, ceiling: int) -> None:
    made = translator(search, tokens=90)
    made(["the old boat drifts home", "frogs jump", "red birds sing. blue fish swim", "frogs"] * 5)
    sizes = [batch.numel() for batch in made.engine.model.batches]  # type: ignore[union-attr]
    assert max(sizes) <= ceiling
    assert len(sizes) > 1


def test_long_texts_are_split_at_sentence_marks_and_rejoined() -> None:
    made = translator(max_length=8)
    text = "red birds sing. blue fish swim. green frogs jump. the old boat drifts home."
    (result,) = made.translate([text])
    assert result.text == text
    assert len(result.segments) > 1
    starts = {TOKENIZER.decode_target([row[row > 3].tolist()])[0] for b in made.engine.model.batches for row in b}  # type: ignore[union-attr]
    assert {"red birds sing. blue fish swim.", "green frogs jump."} <= starts


def test_without_sentence_marks_blanks_serve_and_without_those_anything() -> None:
    made = translator(max_length=5)
    blanks = "red birds blue fish green frogs " * 20
    assert made([blanks]) == [blanks.strip()]
    solid = "frogs" * 500
    assert made([solid])[0].replace(" ", "") == solid
    full_width = "달이뜹니다。" * 30
    assert made([full_width]) == [full_width]


def encoded(made: Translator[TorchEngine]) -> list[str]:
    """Every part that the model was given, sorted."""
    return sorted(
        TOKENIZER.decode_source([[token for token in row.tolist() if token > 3]])[0]
        for batch in made.engine.model.batches  # type: ignore[union-attr]
        for row in batch
    )


def test_sentences_are_translated_one_by_one_and_rejoined_with_their_blanks() -> None:
    text = "red birds sing.  blue fish swim!\tfrogs jump? the boat"
    apart = translator(split="sentences")
    (found,) = apart.translate([text])
    assert encoded(apart) == ["blue fish swim!", "frogs jump?", "red birds sing.", "the boat"]
    assert (found.text, len(found.segments), found.sentences, found.too_long) == (text, 4, 4, False)
    together = translator(split="length")
    (found,) = together.translate([text])
    assert len(encoded(together)) == len(found.segments) == 1
    assert found.sentences == 4


def test_sentences_that_are_too_long_are_split_too() -> None:
    made = translator(split="sentences", max_length=8)
    (found,) = made.translate(["red birds sing, blue fish swim, green frogs jump. frogs"])
    assert found.text == "red birds sing, blue fish swim, green frogs jump. frogs"
    assert (found.too_long, found.sentences) == (True, 2)
    assert len(found.segments) > 2


def test_never_gives_a_line_whole_however_long() -> None:
    made = translator(split="never", max_length=8, tokens=4000)
    text = "red birds sing. " * 20
    (found,) = made.translate([text])
    assert (found.text, len(found.segments), found.too_long) == (text.strip(), 1, False)


@pytest.mark.parametrize("max_length", [1, 2, 3])
def test_a_character_spelt_in_bytes_is_never_cut(max_length: int) -> None:
    """An emoji that the tokenizer does not know is four bytes; half of them would be no character."""
    made = translator(max_length=max_length)
    assert made(["😀😁😂" * 5]) == ["😀😁😂" * 5]
    assert made(["고래가 노래합니다。 달이"]) == ["고래가 노래합니다。 달이"]


@each_row(
    ("asked", "share", "split"),
    [
        ("auto", 0.0, "sentences"),
        ("auto", 0.09, "sentences"),
        ("auto", 0.1, "length"),
        ("auto", None, "unknown"),
        ("sentences", None, "sentences"),
        ("never", 0.0, "never"),
    ],
)
def test_auto_asks_what_the_model_was_trained_on(asked: str, share: float | None, split: str) -> None:
    assert resolved_split(asked, share) == split


def test_a_str_is_one_text_and_a_generator_is_several() -> None:
    made = translator()
    assert made("the old boat") == ["the old boat"]
    assert made(text for text in ("frogs", "", "the boat")) == ["frogs", "", "the boat"]


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (None, r"texts must be a str or several of them, as in \['A sentence.'\], not NoneType"),
        (5, "not int"),
        (["frogs", None], r"texts\[1\] must be a str, not NoneType"),
        (b"frogs", r"texts\[0\] must be a str, not int"),
    ],
)
def test_what_is_no_text_is_a_clear_error(texts: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        translator()(texts)


def test_prefixes_and_pairs_that_would_be_cut_are_refused() -> None:
    made = translator()
    with pytest.raises(TypeError, match=r"prefixes must be several texts, as in \['the'\]"):
        made.translate(["the boat"], Request(prefixes="the"))
    with pytest.raises(ValueError, match="prefixes must be one for each text, and are 2 for 1"):
        made.translate(["the boat"], Request(prefixes=["the", ""]))
    pairs: list[Any] = ["ab", ("the", "boat", "home")]
    for pair in pairs:
        with pytest.raises(TypeError, match=r"pairs\[0\] must be a source and a target, and not"):
            made.score([pair])


def test_a_hundred_thousand_characters() -> None:
    text = "red birds sing. " * 6250
    (result,) = translator(max_length=40, tokens=4000).translate([text])
    assert result.text == text.strip()


def test_an_unfinished_translation_is_reported() -> None:
    made = translator(GreedyConfig(max_length_factor=0.0, max_length_extra=1))
    results = made.translate(["the old boat drifts home", ""])
    assert [result.complete for result in results] == [False, True]


def test_accents_are_composed_where_the_training_text_had_them_so() -> None:
    decomposed = unicodedata.normalize("NFD", "Zürich über")
    engine = TorchEngine(Copy(TOKENIZER.target_size), torch.device("cpu"))
    composing = Translator(engine, facts(characters=CharacterForm("nfc")), Request("greedy"))
    assert composing([decomposed]) == ["Zürich über"]
    assert translator()([decomposed]) == [decomposed]


def test_letters_are_spelt_as_the_training_text_of_the_direction_had_them() -> None:
    engine = TorchEngine(Copy(TOKENIZER.target_size), torch.device("cpu"))
    form, to_turkish = CharacterForm(typography="standard"), Direction("ro", "tr")
    known = replace(facts(characters=form), directions=(to_turkish, Direction("tr", "ro")))
    made = Translator(engine, known, Request("greedy", direction=to_turkish))
    assert made(["Ştiinţa"]) == ["Știința"]
    assert made.characters == form.of(to_turkish)
    assert made(["Ştiinţa"], Request(direction=Direction("tr", "ro"))) == ["Ştiinţa"]
    assert made.for_direction(Direction("tr", "ro")).characters.target("Ştiinţa") == "Știința"
    prefixed = made.translate(["Ştiinţa"], Request(prefixes=["Ş"]))
    assert prefixed[0].text.startswith("Ş")  # Turkish has this letter


@pytest.mark.parametrize(
    "text", ["\ufeffthe\xa0old boat", "the\u3000old bo\xadat\u200e", "the\rold boat\u200b", "the old\x1fboat\u2069"]
)
def test_what_a_reader_does_not_see_changes_nothing(text: str) -> None:
    engine, plain = TorchEngine(Copy(TOKENIZER.target_size), torch.device("cpu")), "the old boat"
    known = facts(characters=CharacterForm("nfc", "strip", "space"))
    made = Translator(engine, known, Request("greedy"), DecodingConfig(split="sentences"))
    assert made([text, f"{text}. {text}."]) == [plain, f"{plain}. {plain}."]
    assert made([f"{plain}.\n {text}."]) == [f"{plain}.\n {plain}."]  # a line of its own stays one
    assert made.translate([text], Request(prefixes=[text])) == made.translate([plain], Request(prefixes=[plain]))
    assert translator()([text]) != [plain]  # a model that knows every character

    scored: list[Any] = []

    def token_scores(pairs: Any, tick: Any) -> list[list[float]]:
        scored.append(pairs)
        return [[0.0]]

    made.token_scores = token_scores  # type: ignore[method-assign,assignment]
    made.score([(text, text)])
    made.score([(plain, plain)])
    assert scored[0] == scored[1]


def short_of_memory(made: Translator[TorchEngine], most: int) -> None:
    """Raise out of memory for batches of more positions from now on."""
    real = made.engine.model.start

    def start(source: Tensor, lengths: Tensor) -> DecoderState:
        state = real(source, lengths)
        if source.numel() > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return state

    made.engine.model.start = start  # type: ignore[method-assign]


@pytest.mark.parametrize("search", [GreedyConfig(), BeamConfig(beam_size=3)])
def test_batches_without_room_are_made_smaller(search: SearchConfig) -> None:
    texts = ["the old boat drifts home", "frogs jump", "red birds sing. blue fish swim", "", "frogs"] * 5
    notes, ticks = list[str](), list[float]()
    made = translator(search, tokens=400, workers=1, say=notes.append)
    short_of_memory(made, 50)
    assert [translation.text for translation in made.translate(texts, tick=ticks.append)] == texts
    assert sum(ticks) == pytest.approx(len(texts))
    failed = [batch for batch in made.engine.model.batches if batch.numel() > 50]  # type: ignore[union-attr]
    assert len(notes) == len(failed) >= 1
    assert notes[-1] == f"note: out of memory while translating: continuing with decoding.tokens={made.tokens}"
    made(texts)
    assert len(notes) == len(failed)  # it knows now


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("search", [GreedyConfig(), BeamConfig(beam_size=3)])
def test_batches_side_by_side_give_what_they_give_in_turn(search: SearchConfig, workers: int) -> None:
    """Each under the ceiling; each text's translation in its place; the progress adds up."""
    texts = ["the old boat drifts home", "frogs jump", "red birds sing. blue fish swim", "", "frogs"] * 9
    made, ticks, names = translator(search, tokens=180, workers=workers), list[float](), set[str]()
    real = made.engine.model.start

    def start(source: Tensor, lengths: Tensor) -> DecoderState:
        names.add(threading.current_thread().name)
        return real(source, lengths)

    made.engine.model.start = start  # type: ignore[method-assign]
    assert [translation.text for translation in made.translate(texts, tick=ticks.append)] == texts
    assert sum(ticks) == pytest.approx(len(texts))
    sizes = [batch.numel() for batch in made.engine.model.batches]  # type: ignore[union-attr]
    assert max(sizes) * search.width <= 180
    assert threading.current_thread().name not in names
    made(["frogs"])
    assert threading.current_thread().name in names  # a single batch has all of torch's threads


def test_workers_share_torch_s_threads_and_leave_them_as_they_were() -> None:
    torch.set_num_threads(4)
    try:
        with side_by_side(2) as threads:
            shares = [threads.submit(torch.get_num_threads).result() for _ in range(4)]
        with side_by_side(1) as threads:
            assert threads.submit(torch.get_num_threads).result() == 4
        assert (set(shares), torch.get_num_threads()) == ({2}, 4)
        assert translator()._decoder.workers == 2
    finally:
        torch.set_num_threads(1)
    assert translator()._decoder.workers == 1


def test_after_an_interruption_only_work_that_has_begun_is_finished() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.set()
        go_on.wait()
        done.append(number)

    def interrupted() -> None:
        with side_by_side(2) as threads:
            for number in range(50):
                threads.submit(work, number)
            begun.wait()
            threading.Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert 1 <= len(done) <= 2


def test_one_caller_at_a_time_has_workers_and_the_others_do_not_wait() -> None:
    """A second one would take the share of the first one's workers for all of torch's threads."""
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(1) as pool, side_by_side(2) as workers:

        def call() -> tuple[int, int]:
            with side_by_side(2) as own:
                return own.submit(threading.get_ident).result(), threading.get_ident()

        first, caller = pool.submit(call).result(20)
        assert first == caller
        assert workers.submit(threading.get_ident).result() != threading.get_ident()
    with side_by_side(2) as workers:
        assert workers.submit(threading.get_ident).result() != threading.get_ident()
    assert torch.get_num_threads() == threads


def test_side_by_side_all_have_about_as_much_to_do() -> None:
    """Batches are the same with any number of threads."""
    sources = [[5] * (4 + number % 9) for number in range(120)]
    decoders = [translator(tokens=1000, workers=workers)._decoder for workers in (1, 2, 3)]
    made = [decoder._batches(sources, range(120), 1) for decoder in decoders]
    assert made[0] == made[1] == made[2]
    tokens = [sum(len(sources[i]) + 1 for i in numbers) for numbers in made[0]]
    assert sum(tokens) == sum(map(len, sources)) + 120
    assert len(tokens) == 2  # one of 1000, and one of what is left, would be unlike each other
    assert max(tokens) - min(tokens) < 0.2 * sum(tokens)
    assert len(translator(tokens=100)._decoder._batches(sources, range(120), 1)) >= 10
    assert len(translator(tokens=16384)._decoder._batches(sources * 10, range(1200), 1)) >= 4, (
        "who is done early has more to do"
    )


def test_a_batch_is_larger_on_a_gpu_unless_it_is_typed() -> None:
    class OnGpu(TorchEngine):
        gpu_memory = 16 * 2**30

    engine = OnGpu(Copy(TOKENIZER.target_size), torch.device("cpu"))

    def ceiling(made: TorchEngine, tokens: int) -> int:
        options = DecodingConfig(tokens=tokens)
        return Translator(made, facts(), Request(GreedyConfig()), options)._decoder.tokens

    assert (ceiling(engine, 0), ceiling(engine, 300)) == (65536, 300)
    assert ceiling(TorchEngine(engine.model, engine.device), 0) == 16384


def test_an_error_beside_others_ends_all() -> None:
    made, begun = translator(tokens=30, workers=2), list[int]()

    def start(source: Tensor, lengths: Tensor) -> DecoderState:
        begun.append(len(source))
        raise ValueError("no such thing")

    made.engine.model.start = start  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="no such thing"):
        made(["the old boat drifts home"] * 40)
    assert len(begun) <= 4  # two for each worker were queued


def test_batches_side_by_side_without_room_are_told_of_once() -> None:
    texts, notes = ["the old boat drifts home"] * 60, list[str]()
    made = translator(tokens=16 * 30, workers=2, say=notes.append)
    short_of_memory(made, 16 * 20)
    assert made(texts) == texts
    assert len(notes) == 1, notes
    assert "continuing with decoding.tokens=" in notes[0]


def test_a_small_batch_without_room_is_halved_itself() -> None:
    """Not the ceiling that it is far below."""
    notes = list[str]()
    made = translator(tokens=4000, say=notes.append)
    short_of_memory(made, len(TOKENIZER.encode_source(["frogs"])[0]) + 1)
    assert made(["frogs"] * 4) == ["frogs"] * 4  # two for each worker
    assert len(notes) == 1


def test_one_sentence_without_room_is_an_error() -> None:
    made = translator()
    short_of_memory(made, 0)
    with pytest.raises(torch.OutOfMemoryError):
        made(["frogs", "frogs jump"])


def test_a_rehearsal_is_the_longest_decode() -> None:
    made = translator(tokens=40)
    texts = ["frogs", "the old boat drifts home", "red birds sing. blue fish swim, green frogs jump."] * 3
    made.rehearse(texts)
    (rehearsed,) = list(made.engine.model.batches)  # type: ignore[arg-type]
    made(texts)
    assert rehearsed.size(1) == max(batch.size(1) for batch in made.engine.model.batches)  # type: ignore[union-attr]
    made.rehearse(["", " "])
