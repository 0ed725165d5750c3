"""Train another toolkit on one thread for some minutes of CPU time, with its own recipe for little text, and score it.

    python benchmarks/auto/peers.py RECIPE PYTHON CORPUS_FOLDER OUT MINUTES

RECIPE: one of RECIPES. PYTHON: of the environment that the toolkit is installed in. Prints one line of JSON. The
checkpoint with the best BLEU on the validation set is the one that is tested, with beam 5.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import yaml

PIECES = 4000
SPECIAL = ("<unk>", "<pad>", "<s>", "</s>")


def languages(corpus: Path) -> tuple[str, str]:
    """Return the languages of a corpus that `corpora.py` made."""
    return "en", "ko" if (corpus / "train.ko").exists() else "de"


def learn_pieces(corpus: Path, out: Path) -> Path:
    """Learn subwords of both sides together, with the special tokens where both toolkits look for them."""
    sentencepiece.SentencePieceTrainer.train(
        input=[str(corpus / f"train.{language}") for language in languages(corpus)],
        model_prefix=str(out / "pieces"),
        vocab_size=PIECES,
        model_type="bpe",
        character_coverage=1.0,
        unk_id=0,
        pad_id=1,
        bos_id=2,
        eos_id=3,
    )
    return out / "pieces.model"


def pieces_of(model: Path) -> list[str]:
    """Return the subwords without the special tokens."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    return [piece for piece in pieces if piece not in SPECIAL]


def batches_of(corpus: Path, model: Path, tokens: int) -> int:
    """Return how many batches of so many target tokens a pass through the text has."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    lines = (corpus / f"train.{languages(corpus)[1]}").read_text("utf-8").splitlines()
    return max(1, sum(len(ids) + 1 for ids in processor.encode(lines)) // tokens)


class JoeyNMT:
    """Its Transformer for IWSLT 2014, with the 4000 subwords and the embedding dropout of Masakhane's notebook."""

    def __init__(self, python: str, corpus: Path, out: Path) -> None:
        self.python, self.corpus, self.out, self.config = python, corpus, out, out / "config.yaml"
        model = learn_pieces(corpus, out)
        (out / "pieces.txt").write_text("".join(f"{piece}\n" for piece in pieces_of(model)), "utf-8")
        sides = {
            side: {
                "lang": language,
                "level": "bpe",
                "lowercase": False,
                "max_length": 100,
                "voc_file": str(out / "pieces.txt"),
                "tokenizer_type": "sentencepiece",
                "tokenizer_cfg": {"model_file": str(model), "pretokenizer": "none"},
            }
            for side, language in zip(("src", "trg"), languages(corpus), strict=True)
        }
        stack = {
            "type": "transformer",
            "num_layers": 6,
            "num_heads": 4,
            "embeddings": {"embedding_dim": 256, "scale": True, "dropout": 0.2},
            "hidden_size": 256,
            "ff_size": 1024,
            "dropout": 0.3,
        }
        tokens = {f"{name}_token": token for name, token in zip(("unk", "pad", "bos", "eos"), SPECIAL, strict=True)}
        ids = {f"{name}_id": index for index, name in enumerate(("unk", "pad", "bos", "eos"))}
        text = {"train": str(corpus / "train"), "dev": str(corpus / "valid"), "test": str(corpus / "test")}
        config = {
            "name": "recipe",
            "joeynmt_version": "2.3.0",
            "model_dir": str(out / "model"),
            "use_cuda": False,
            "fp16": False,
            "random_seed": 42,
            "data": {**text, "dataset_type": "plain", **sides, "special_symbols": {**tokens, **ids}},
            "testing": {"beam_size": 5, "beam_alpha": 1.0, "batch_size": 1024, "batch_type": "token"}
            | {"max_output_length": 100, "eval_metrics": ["bleu"]},
            "training": {
                "optimizer": "adam",
                "adam_betas": [0.9, 0.999],
                "normalization": "tokens",
                "scheduling": "plateau",
                "patience": 5,
                "decrease_factor": 0.7,
                "learning_rate": 0.0003,
                "learning_rate_min": 1e-8,
                "label_smoothing": 0.1,
                "loss": "crossentropy",
                "batch_size": 4096,
                "batch_type": "token",
                "early_stopping_metric": "bleu",
                "epochs": 1000,
                "validation_freq": max(100, batches_of(corpus, model, 4096)),
                "logging_freq": 50,
                "overwrite": True,
                "shuffle": True,
                "print_valid_sents": [0],
                "keep_best_ckpts": 1,
            },
            "model": {
                "initializer": "xavier_uniform",
                "embed_initializer": "xavier_uniform",
                "bias_initializer": "zeros",
                "tied_embeddings": True,
                "tied_softmax": True,
                "encoder": stack,
                "decoder": stack,
            },
        }
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")

    def command(self) -> list[str]:
        """Return the command that trains."""
        return [self.python, "-m", "joeynmt", "train", str(self.config), "--skip-test"]

    def translated(self) -> list[str]:
        """Translate the test set with the best checkpoint, which the toolkit keeps."""
        prefix = self.out / "hypotheses"
        call([self.python, "-m", "joeynmt", "test", str(self.config), "-o", str(prefix)])
        return Path(f"{prefix}.test").read_text("utf-8").splitlines()


class Eole:
    """The default Transformer of its quickstart, on subwords; `settings` are added to those of its training."""

    def __init__(
        self, python: str, corpus: Path, out: Path, training: dict[str, Any] | None = None, **sizes: Any
    ) -> None:
        self.python, self.corpus, self.out, self.config = python, corpus, out, out / "config.yaml"
        model = learn_pieces(corpus, out)
        (out / "pieces.txt").write_text("".join(f"{piece}\t1\n" for piece in pieces_of(model)), "utf-8")
        source, target = languages(corpus)
        texts = {
            part: {
                "path_src": str(corpus / f"{name}.{source}"),
                "path_tgt": str(corpus / f"{name}.{target}"),
                "transforms": ["sentencepiece"],
            }
            for part, name in (("corpus_1", "train"), ("valid", "valid"))
        }
        config = {
            "save_data": str(out / "data"),
            "overwrite": True,
            "seed": 1234,
            "report_every": 50,
            "data": texts,
            "src_vocab": str(out / "pieces.txt"),
            "tgt_vocab": str(out / "pieces.txt"),
            "share_vocab": True,
            "src_vocab_size": PIECES,
            "tgt_vocab_size": PIECES,
            "transforms_configs": {"sentencepiece": {"src_subword_model": str(model), "tgt_subword_model": str(model)}},
            "model": {"architecture": "transformer", **sizes},
            "training": {
                "world_size": 1,
                "gpu_ranks": [],
                "model_path": str(out / "model"),
                "compute_dtype": "fp32",
                "num_workers": 0,
                "bucket_size": 10_000,
                "train_steps": 1_000_000,
                "valid_steps": 100,
                "save_checkpoint_steps": 100,
                "keep_checkpoint": 50,
                **(training or {}),
            },
        }
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")

    def command(self) -> list[str]:
        """Return the command that trains."""
        return [str(Path(self.python).with_name("eole")), "train", "-c", str(self.config)]

    def translated(self) -> list[str]:
        """Translate the test set with the best checkpoint by BLEU on the validation set."""
        found = sorted((self.out / "model").glob("step_*"), key=lambda path: int(path.name.removeprefix("step_")))
        found = found[:-1] or found  # the last one may have been cut off
        reference = self.corpus / f"valid.{languages(self.corpus)[1]}"
        scores = {path: bleu(self._translate(path, "valid"), reference) for path in found}
        print({path.name: round(score, 2) for path, score in scores.items()}, file=sys.stderr)
        return self._translate(max(scores, key=lambda path: scores[path]), "test")

    def _translate(self, checkpoint: Path, name: str) -> list[str]:
        output = self.out / f"{name}.out"
        command = [str(Path(self.python).with_name("eole")), "predict", "--model_path", str(checkpoint)]
        text = self.corpus / f"{name}.{languages(self.corpus)[0]}"
        call([*command, "--src", str(text), "--output", str(output), "--beam_size", "5", "--batch_size", "32"])
        return output.read_text("utf-8").splitlines()


def eole_as_its_recipes(python: str, corpus: Path, out: Path) -> Eole:
    """The same with the training of its WMT 2017 recipe, a smaller model and batches of the size that we use."""
    training = {
        "batch_type": "tokens",
        "batch_size": 2048,
        "optim": "adam",
        "adam_beta2": 0.998,
        "learning_rate": 2.0,
        "decay_method": "noam",
        "warmup_steps": 1000,
        "max_grad_norm": 0.0,
        "label_smoothing": 0.1,
        "normalization": "tokens",
        "dropout": [0.3],
        "attention_dropout": [0.1],
        "param_init_method": "xavier_uniform",
    }
    sizes = {
        "hidden_size": 256,
        "transformer_ff": 1024,
        "heads": 4,
        "layers": 3,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": 256, "position_encoding_type": "SinusoidalInterleaved"},
    }
    return Eole(python, corpus, out, training, **sizes)


Recipe = Callable[[str, Path, Path], JoeyNMT | Eole]
RECIPES: dict[str, Recipe] = {"joeynmt": JoeyNMT, "eole": Eole, "eole_small": eole_as_its_recipes}


def bleu(lines: list[str], reference: Path) -> float:
    """Return BLEU of translations."""
    return float(sacrebleu.corpus_bleu(lines, [reference.read_text("utf-8").splitlines()]).score)


def call(command: list[str]) -> None:
    """Run a command on one thread."""
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=sys.stderr)


def train(command: list[str], minutes: float, log: Path) -> float:
    """Train until so much CPU time is used, or it ends; return the minutes."""
    used = 0.0
    with log.open("w") as file:
        child = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while child.poll() is None and used < minutes * 60:
            time.sleep(2)
            seconds = subprocess.run(["ps", "-o", "cputimes=", "-p", str(child.pid)], capture_output=True, text=True)
            used = float(seconds.stdout or used)
        is_over = child.poll() is not None
        child.kill()
        if is_over and child.returncode:
            raise SystemExit(f"the training failed: {log}")
        child.wait()
    return used / 60


def main() -> None:
    """Train, translate and score."""
    recipe, python, corpus, out, minutes = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]
    out.mkdir(parents=True)
    toolkit = RECIPES[recipe](python, corpus, out)
    used = train(toolkit.command(), float(minutes), out / "log.txt")
    lines = toolkit.translated()
    reference = corpus / f"test.{languages(corpus)[1]}"
    (out / "test.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    chrf = sacrebleu.corpus_chrf(lines, [reference.read_text("utf-8").splitlines()]).score
    figures = {"recipe": recipe, "corpus": corpus.name, "minutes": round(used, 1)}
    print(json.dumps(figures | {"BLEU": round(bleu(lines, reference), 2), "chrF2": round(chrf, 2)}))


if __name__ == "__main__":
    main()
