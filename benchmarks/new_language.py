"""A small model in NLLB-200's form, pretrained on three languages, and then a language that it has never seen.

    python benchmarks/new_language.py CORPORA OUT base --minutes 60
    python benchmarks/new_language.py CORPORA OUT runs --minutes 10
    python benchmarks/new_language.py CORPORA OUT table

CORPORA: tatoeba_100k (en-de) and libreoffice (en-ko), as benchmarks/auto/corpora.py makes them, and folders `turkish`
and `indonesian` with train, valid and test (.eng_Latn, and .tur_Latn or .ind_Latn): 3000, 300 and 500 strings of GIMP's
and GTK's message catalogues.
`base` needs `transformers`: it writes the folder with random weights. Minutes are those of CPU time, on one thread.
"""

import io
import json
import random
from collections.abc import Container
from pathlib import Path
from typing import Any

from cpu_minutes import cell, figures_of, run, train

LANGUAGES = ("deu_Latn", "eng_Latn", "kor_Hang")
TEXTS = {"tatoeba_100k": ("en", "de"), "libreoffice": ("en", "ko")}
CODES = {"en": "eng_Latn", "de": "deu_Latn", "ko": "kor_Hang"}
COMMON = [
    *("corpus=files", "trainer.threads=1", "trainer.samples=0", "metrics.names=[bleu,chrf]", "report.page=false"),
    *("report.plots=false", "search.beam_size=4"),
]
NEW = {"turkish": "tur_Latn", "indonesian": "ind_Latn"}
WAYS: dict[str, list[str]] = {
    "no_new_subwords": ["tokenizer.extend=0"],
    "1000_new_subwords": ["tokenizer.extend=1000"],
    "begins_as_korean": ["corpus.like=kor_Hang"],
    "third_of_the_rate": ["optimizer.lr=0.0003"],
    "adapters": ["finetuning.lora_rank=32"],
    "adapters_at_a_third_of_the_rate": ["finetuning.lora_rank=32", "optimizer.lr=0.001"],
    "old_text_beside": ["corpus.weights=[1,1]"],
    "as_it_comes": [],
}
OLD_LINES = 500  # of Tatoeba's test set


def write_folder(corpora: Path, folder: Path) -> None:
    """Write a folder of NLLB-200 with random weights, and subwords of the three languages."""
    import torch
    from sentencepiece import SentencePieceTrainer
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    texts: list[str] = []
    for name, languages in TEXTS.items():
        for code in languages:
            texts += (corpora / name / f"train.{code}").read_text("utf-8").splitlines()[:30_000]
    random.Random(1).shuffle(texts)
    trained = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=trained, vocab_size=8000, model_type="bpe", minloglevel=2
    )
    folder.mkdir(parents=True)
    (folder / "sentencepiece.bpe.model").write_bytes(trained.getvalue())
    for name, values in (
        ("special_tokens_map.json", {"additional_special_tokens": LANGUAGES, "mask_token": "<mask>"}),
        ("tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"}),
    ):
        (folder / name).write_text(json.dumps(values), encoding="utf-8")
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {f"{side}_layers": 3, f"{side}_attention_heads": 4, f"{side}_ffn_dim": 512, f"{side}_layerdrop": 0.0}
    torch.manual_seed(1)
    rows = 8000 + 1 + len(LANGUAGES) + 1  # <pad>, tags and <mask>
    M2M100ForConditionalGeneration(M2M100Config(vocab_size=rows, d_model=128, **sides)).save_pretrained(folder)


def text_of(prefix: Path, source: str, target: str) -> str:
    """Return two files with the codes of their languages, as corpus.train and others take them."""
    return f"{{text: [{prefix}.{source}, {prefix}.{target}], source: {CODES[source]}, target: {CODES[target]}}}"


def base(corpora: Path, out: Path, minutes: float) -> None:
    """Pretrain on all directions of the two texts."""
    if not (out / "folder").exists():
        write_folder(corpora, out / "folder")

    def texts(split: str) -> str:
        entries = [text_of(corpora / name / split, *languages) for name, languages in TEXTS.items()]
        return f"corpus.{split}=[{', '.join(entries)}]"

    train(
        [
            *COMMON,
            *(f"run.init_from={out / 'folder'}", *map(texts, ("train", "valid", "test"))),
            *("corpus.both_directions=true", "tokenizer.extend=0", "optimizer.lr=0.003", "scheduler.warmup=400"),
            *("batching.tokens=2048", "trainer.epochs=100", "trainer.validate_every=1000"),
        ],
        out / "base",
        minutes,
    )


def runs(corpora: Path, out: Path, minutes: float) -> None:
    """Fine-tune for each new language in every way, and train from nothing."""
    for code in ("en", "de"):
        lines = (corpora / "tatoeba_100k" / f"test.{code}").read_text("utf-8").splitlines()[:OLD_LINES]
        (out / f"old.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    old = {split: text_of(corpora / "tatoeba_100k" / split, "en", "de") for split in ("train", "valid")}
    old["test"] = text_of(out / "old", "en", "de")

    def texts(new: str, beside: Container[str]) -> list[str]:
        """Return the splits of a new language, some with the old text beside it."""
        own = {split: str(corpora / new / split) for split in old}
        return [f"corpus.{split}=[{f'{own[split]}, {old[split]}' if split in beside else own[split]}]" for split in old]

    for new, code in NEW.items():
        common = [*COMMON, "corpus.source=eng_Latn", f"corpus.target={code}"]
        for way, settings in WAYS.items():
            beside = old if way == "old_text_beside" else ["test"]
            start = f"run.init_from={out / 'base'}"
            train([*common, start, *texts(new, beside), *settings], out / f"{new}_{way}", minutes)
        for family in ("rnn", "transformer"):
            alone = [*common, *texts(new, []), "corpus.both_directions=true", f"model.family={family}"]
            train(alone, out / f"{new}_from_nothing_{family}", minutes)


def table(out: Path) -> None:
    """Print a line for each test set of each way."""
    for folder, found in figures_of(out).items():
        print(f"{folder}: {found['updates']} updates, {found['seconds']:.0f} s")
        for name, test in found["tests"].items():
            print(f"    {name}: {cell(test)}")


if __name__ == "__main__":
    run(__doc__, {"base": base, "runs": runs}, table)
