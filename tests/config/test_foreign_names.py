"""What other programs call our settings: the table names settings that exist, and each command says them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.config import foreign_names
from tolka.config.choices import choices_of, known_keys
from tolka.config.foreign_names import meaning
from tolka.system.package_data import table_beside

Command = Callable[..., Any]
KNOWN = {*known_keys("train"), *known_keys("translate"), *known_keys("evaluate"), "search.prefix"}
TABLE = table_beside(foreign_names.__file__)


def test_every_setting_in_the_table_exists() -> None:
    assert {*TABLE["names"]} - KNOWN == {"hypothesis", "reference", "source", "language"}
    sentences = " ".join(text for command in TABLE["sentences"].values() for text in command.values())
    groups = "|".join({key.split(".")[0] for key in KNOWN})
    named = set(re.findall(rf"\b((?:{groups})\.\w+)", sentences))
    assert named - KNOWN == set()
    chosen = re.findall(r"\b(model|optimizer|scheduler|corpus|search)=(\w+)", sentences)
    assert [(group, name) for group, name in chosen if name not in choices_of(group)] == []


FAIRSEQ = "max-tokens dropout lr warmup-updates max-update update-freq save-dir label-smoothing clip-norm arch"
OPENNMT = "train_steps batch_type save_model world_size valid_steps rnn_size word_vec_size accum_count src_vocab optim"
SOCKEYE = "num-layers num-embed max-num-epochs batch-type max-updates initial-learning-rate prepared-data amp use-cpu"
HUGGING_FACE = "per_device_train_batch_size num_train_epochs output_dir fp16 gradient_accumulation_steps learning_rate"
LIGHTNING = "trainer.max_epochs ckpt_path callbacks hparams_search data paths.data_dir seed logger lr batch_size"


def test_the_commonest_names_of_other_programs_are_known() -> None:
    names = f"{FAIRSEQ} {OPENNMT} {SOCKEYE} {HUGGING_FACE} {LIGHTNING}".split()
    assert [name for name in names if not re.match(r" Here( it is:?|,) ", meaning(f"--{name}", "3", "train"))] == []


@each_row(
    ("typed", "words"),
    [
        ("mt-train learning_rate=1e-4", "unknown key 'learning_rate'. Here it is optimizer.lr=1e-4"),
        ("mt-train +lr=1e-4", "unknown key 'lr'. Here it is optimizer.lr=1e-4"),
        ("mt-train trainer.max_epochs=3", "Here it is trainer.epochs=3"),
        ("mt-train data.train=a.en", "Here it is: corpus=files"),
        ("mt-train --exponential-smoothing 1e-4", "Here it is: trainer.ema=0.9999, which is 1 less that number"),
        ("mt-train logger=wandb", "Here it is: tracking=wandb"),
        ("mt-train trainer=cpu", "unknown trainer 'cpu'. Here it is: trainer.device=cpu"),
        ("mt-train trainer=ddp", "Here it is: trainer.devices=2"),
        (
            "mt-train --max-tokens 4096",
            "--max-tokens is not an option; settings are key=value. Here it is batching.tokens=4096",
        ),
        ("mt-train --lr=1e-4 model=lstm", "Here it is optimizer.lr=1e-4"),
        ("mt-train --fp16 model=lstm", "Here it is: trainer.precision=fp16 or bf16"),
        ("mt-train --model lstm", "Here it is model=lstm"),
        ("mt-train input.colum=3", "Did you mean 'corpus.columns'?"),
        ("mt-train --zebra 3", "unrecognized arguments: --zebra; mt-train --help"),
        ("mt-translate M --beam 5", "Here it is search.beam_size=5"),
        ("mt-translate M -i FILE", "Here, a text is named alone: mt-translate MODEL FILE"),
        ("mt-translate M -b 8", "Here it is: search.beam_size=N is the beam; decoding.tokens=N is a batch's padded"),
        ("mt-train -b 64", "Here it is: batching.tokens=N"),
        ("mt-train run.root=x", "Here it is run.dir=x"),
        ("mt-eval --language Korean", "Here it is files.language=ko"),
        ("mt-train --source-lang German", "Here it is corpus.source=de"),
        ("mt-eval -l en-ko", "Here it is: language=de, the code"),
        ("mt-train corpus.source=english", "corpus.source ('english') is not a language code, as en, zh-Hant and x-m"),
        ("mt-eval language=Korean", "Did you mean 'ko'?"),
        ("mt-translate M beam=5", "Here it is search.beam_size=5"),
        ("mt-translate M input.colum=3", "Did you mean 'input.column'?"),
        ("mt-eval -i FILE", "Here it is hypothesis=FILE"),
        ("mt-eval ref=FILE", "Here it is reference=FILE"),
    ],
)
def test_each_command_says_what_it_is_called_here(command: Command, typed: str, words: str) -> None:
    outcome = command(*typed.split())
    assert (outcome.code, words in outcome.error) == (2, True), outcome.error


@pytest.mark.parametrize("text", ["I love you.", "Hello", "and/or so"])
def test_a_sentence_in_place_of_a_file(command: Command, text: str) -> None:
    outcome = command("mt-translate", "M", text)
    assert outcome.error == f'{text}: there is no such file; to translate a sentence: echo "..." | mt-translate MODEL'
    assert command("mt-translate", "M", "data/news.en").error == "data/news.en: there is no such file"


def test_a_mistyped_path_is_that_of_its_neighbour(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "sample").mkdir(parents=True)
    (tmp_path / "news.en").touch()
    meant = ". Did you mean 'runs/sample'?"
    for typed in (
        "mt-translate runs/sampel news.en",
        "mt-translate run/sample",
        "mt-eval runs/sampl source=a reference=b",
    ):
        assert command(*typed.split()).error.endswith(meant) == ("mt-eval" not in typed), typed
    assert command("mt-translate", "runs/sample", "new.en").error.endswith("no such file. Did you mean 'news.en'?")
    assert command("mt-translate", "runs/sample", "zebra.en").error == "zebra.en: there is no such file"
    files = "corpus.train=[[news.em,news.en]]", "corpus.valid=auto"
    assert command("mt-train", *files).error == "corpus.train: there is no file news.em. Did you mean 'news.en'?"
