"""Random models of Marian, M2M-100 and NLLB-200, in and out: logits, greedy and beam search, tensors, CTranslate2.

    python benchmarks/families.py WORK [--models 40] [--lines 20]

`transformers` makes models of random sizes, tied or not, in each layout of their tokenizers (`tests/support` has how).
Each is read, written as a model directory, and exported to Hugging Face and to CTranslate2 again. Prints a JSON line
for each model, and for each family a summary. The Python that runs it needs `transformers` and `ctranslate2`.
"""

import argparse
import json
import random
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from tolka.engines.options import DecodingConfig
from tolka.formats.huggingface.family import read_foreign
from tolka.interchange.export_ctranslate2 import export_checked
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.interchange.parity import TolkaSide, compare, direction_to_compare
from tolka.interchange.transformers_side import TransformersSide
from tolka.model_directory.read import load_model
from tolka.search.options import BeamConfig
from tolka.text.direction import Direction
from tolka.translation.translator import Translator

TESTS = Path(__file__).resolve().parents[1] / "tests"
MOST = 30  # tokens of a translation
DIRECTIONS = {
    "m2m100": Direction("en", "de"),
    "nllb": Direction("eng_Latn", "kor_Hang"),
    "marian": Direction("xa", "xb"),
}
LAYOUTS = {"m2m100": ("m2m100",), "nllb": ("nllb", "nllb_old", "nllb_new"), "marian": ("marian",)}


def make(folder: Path, family: str, seed: int) -> None:
    """Make a random model of a family with `transformers`."""
    sys.path[:0] = [str(TESTS), str(TESTS / "support")]
    from m2m_folder import write_m2m_folder
    from marian_folder import Sizes, write_folder

    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 4])
    width = heads * draw.choice([9, 12, 15, 16, 21])
    layers = draw.randint(1, 3), draw.randint(1, 3)
    sizes = Sizes(width, *layers, heads, draw.choice([24, 50, 96]), positions=80)
    options: dict[str, Any] = {
        "activation_function": draw.choice(["relu", "gelu", "swish"]),
        "scale_embedding": draw.random() < 0.7,
        "tie_word_embeddings": draw.random() < 0.7,
        "init_std": 0.2,
    }
    if family == "marian":
        options["share_encoder_decoder_embeddings"] = options["tie_word_embeddings"]
        write_folder(folder, sizes, tags=draw.random() < 0.5, **options)
    else:
        write_m2m_folder(folder, draw.choice(LAYOUTS[family]), sizes, seed, **options)


def beams(folder: Path, direction: Direction, lines: list[str]) -> int:
    """Return how many lines a beam of 4 translates as in `transformers`, whose scores have no length penalty here."""
    import transformers

    saved = load_model(folder.parent / "in")
    vocabulary = saved.tokenizer.vocabularies[-1]
    settings: dict[str, Any] = {"source": direction.source, "target": direction.target} if vocabulary.tags else {}
    decoding = DecodingConfig(device="cpu", split="never", **settings)
    search = BeamConfig(beam_size=4, length_normalization="none", max_length_factor=0.0, max_length_extra=MOST - 1)
    translator = Translator.of(saved, search, decoding)
    names = {"src_lang": direction.source} if vocabulary.tags else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder.parent / "back"), **names)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(folder)).eval()
    config, order = model.config, vocabulary.ids_in_original_order()
    first = order.index(vocabulary.tag_ids[direction.target]) if vocabulary.tags else None
    never = sorted({config.pad_token_id, config.bos_token_id} - {None})
    same = 0
    for line in lines:
        with torch.inference_mode():
            (row,) = model.generate(
                **tokenizer([line], return_tensors="pt"),
                num_beams=4,
                length_penalty=0.0,
                early_stopping="never",
                max_length=None,
                max_new_tokens=MOST + bool(first),
                forced_bos_token_id=first,
                forced_eos_token_id=None,
                bad_words_ids=[[number] for number in never],
            ).tolist()
        ids = [order[number] for number in row[1 + bool(first) :] if number not in (config.eos_token_id, *never)]
        (found,) = translator.translate([line])
        same += [number for _, target in found.candidates[0].segments for number in target] == ids
    return same


def measured(work: Path, family: str, seed: int, count: int) -> dict[str, Any]:
    """Take a random model in and out; return how alike both sides are."""
    from marian_folder import mixed_lines

    folder, direction, lines = work / "folder", DIRECTIONS[family], mixed_lines(count, seed)
    foreign = read_foreign(folder)
    said: list[str] = []
    import_huggingface(folder, work / "in", direction if foreign.tokenizer.languages else None, lines, said.append)
    export_huggingface(work / "in", work / "back", "float32", lines, said.append)
    saved = load_model(work / "in")
    side = TransformersSide(
        work / "back", foreign.family, saved.tokenizer.vocabularies[-1], MOST, None, direction_to_compare(saved)
    )
    parity = compare(TolkaSide(saved, MOST), side, lines, TolkaSide(saved, MOST).beginning)
    before, after = (load_file(path / "model.safetensors") for path in (folder, work / "back"))
    exported = export_checked(work / "in", work / "out", lines=lines)
    return {
        "family": family,
        "seed": seed,
        "lines": count,
        "greedy": parity.identical,
        "logits": parity.logits,
        "beam": beams(folder, direction, lines),
        "tensors": all(torch.equal(before[name], tensor) for name, tensor in after.items()),
        "ctranslate2": exported.identical,
    }


def main() -> None:
    """Make and measure the models of each family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--lines", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for family in DIRECTIONS:
        found = []
        for seed in range(1, options.models + 1):
            work = options.work / family
            shutil.rmtree(work, ignore_errors=True)
            make(work / "folder", family, seed)
            found.append(measured(work, family, seed, options.lines))
            print(json.dumps(found[-1]), flush=True)
        total = {key: sum(each[key] for each in found) for key in ("lines", "greedy", "beam", "ctranslate2", "tensors")}
        print(json.dumps({"family": family, **total, "logits": max(each["logits"] for each in found)}), flush=True)


if __name__ == "__main__":
    main()
