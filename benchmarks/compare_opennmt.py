"""Train OpenNMT-py on a run's text, with its pieces, its size and as many minutes, and say which translates better.

    python benchmarks/compare_opennmt.py runs/tatoeba --corpus DIR --onmt VENV/bin [--minutes 60]

DIR holds train, valid and test of the run's languages, plain or gzip. VENV has OpenNMT-py 3.5.1 (and whatever torch
both are to run on). Its settings are those of its own Transformer recipe: Adam with the noam schedule, peak 1e-3 after
400 updates, label smoothing and dropout 0.1, batches of as many tokens as the run's. The clock starts when its training
loop does; its last checkpoint of that time (it saves every 200 updates) decodes with beam 5. Everything is kept in
the folder `opennmt` beside the run's.
"""

import argparse
import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from sentencepiece import SentencePieceProcessor


def settings(run: dict[str, Any], work: Path, languages: tuple[str, str]) -> dict[str, Any]:
    """OpenNMT-py's, for the run's sizes."""
    with (work / f"train.{languages[0]}").open("rb") as stream:
        pairs = sum(1 for _ in stream)
    model, tokens = run["model"], run["batching"]["tokens"]
    pieces = {"model": str(work / "tokenizer.model"), "type": "sentencepiece"}
    return {
        "seed": 1,
        "save_data": str(work / "data"),
        "data": {
            name: {
                "path_src": str(work / f"{split}.{languages[0]}"),
                "path_tgt": str(work / f"{split}.{languages[1]}"),
                "transforms": ["sentencepiece", "filtertoolong"],
            }
            for name, split in (("corpus_1", "train"), ("valid", "valid"))
        },
        **{f"{side}_subword_{key}": value for side in ("src", "tgt") for key, value in pieces.items()},
        "src_seq_length": run["batching"]["max_length"],
        "tgt_seq_length": run["batching"]["max_length"],
        "share_vocab": True,
        "src_vocab": str(work / "vocab.txt"),
        "tgt_vocab": str(work / "vocab.txt"),
        "src_vocab_size": run["tokenizer"]["vocab_size"],
        "tgt_vocab_size": run["tokenizer"]["vocab_size"],
        "overwrite": True,
        "world_size": 1,
        "gpu_ranks": [],
        "model_dtype": "fp32",
        "batch_type": "tokens",
        "batch_size": tokens,
        "normalization": "tokens",
        "accum_count": [1],
        "bucket_size": pairs,  # sorted by length over the whole text, as the run's batches are
        "num_workers": 0,
        "prefetch_factor": 100,
        "optim": "adam",
        "adam_beta2": 0.98,
        "decay_method": "noam",
        "learning_rate": 1e-3 * (model["d_model"] * 400) ** 0.5,  # noam: its peak is this / sqrt(d_model * warmup)
        "warmup_steps": 400,
        "max_grad_norm": 1.0,
        "dropout": [model["dropout"]],
        "attention_dropout": [model["attention_dropout"]],
        "dropout_steps": [0],
        "label_smoothing": 0.1,
        "param_init": 0,
        "param_init_glorot": True,
        "train_steps": 10_000_000,
        "valid_steps": 10_000_000,
        "save_checkpoint_steps": 200,
        "keep_checkpoint": 2,
        "save_model": str(work / "model"),
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "enc_layers": model["layers"],
        "dec_layers": model["decoder_layers"] or model["layers"],
        "heads": model["heads"],
        "hidden_size": model["d_model"],
        "word_vec_size": model["d_model"],
        "transformer_ff": model["d_ff"] or 4 * model["d_model"],
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "report_every": 100,
    }


def prepare(run: Path, corpus: Path, work: Path, languages: tuple[str, str]) -> None:
    """Plain text, the run's pieces as a vocabulary, and the test set's source in pieces."""
    work.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        for language in languages:
            path = corpus / f"{split}.{language}"
            text = (
                path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())
            )
            (work / path.name).write_bytes(text)
    shutil.copy(run / "best" / "tokenizer.model", work)
    processor = SentencePieceProcessor(model_file=str(work / "tokenizer.model"))
    pieces = [
        processor.id_to_piece(number) for number in range(4, processor.get_piece_size())
    ]  # 0 to 3: <pad> and so on
    (work / "vocab.txt").write_text("".join(f"{piece}\t1\n" for piece in pieces), encoding="utf-8")
    lines = (work / f"test.{languages[0]}").read_text(encoding="utf-8").splitlines()
    segmented = "".join(" ".join(processor.encode(line, out_type=str)) + "\n" for line in lines)
    (work / "test.pieces").write_text(segmented, encoding="utf-8")


def train(onmt: Path, work: Path, minutes: float) -> float:
    """Until the time is over; returns the minutes from the loop's first log line on."""
    log = work / "train.log"
    with log.open("wb") as stream:
        command = [str(onmt / "onmt_train"), "-config", str(work / "config.yaml")]
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while process.poll() is None and b"training loop" not in log.read_bytes():
                time.sleep(0.2)
            started_at = time.monotonic()
            while process.poll() is None and time.monotonic() - started_at < 60 * minutes:
                time.sleep(1.0)
        finally:
            ended = process.poll() is not None
            if not ended:
                os.killpg(process.pid, signal.SIGKILL)
    if ended:
        sys.exit(f"OpenNMT-py ended by itself; see {log}")
    return (time.monotonic() - started_at) / 60


def main() -> None:
    """Prepare, train, decode, score, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--onmt", type=Path, required=True, help="folder with onmt_train and onmt_translate")
    parser.add_argument("--minutes", type=float, default=60.0)
    arguments = parser.parse_args()
    config = yaml.safe_load((arguments.run / "best" / "config.yaml").read_text(encoding="utf-8"))
    languages = config["corpus"]["source"], config["corpus"]["target"]
    work = arguments.run.parent / "opennmt"
    prepare(arguments.run, arguments.corpus, work, languages)
    (work / "config.yaml").write_text(yaml.safe_dump(settings(config, work, languages)), encoding="utf-8")
    minutes = train(arguments.onmt, work, arguments.minutes)
    if not list(work.glob("model_step_*.pt")):
        sys.exit(f"OpenNMT-py saved nothing in {minutes:.1f} minutes; see {work / 'train.log'}")
    model = max(work.glob("model_step_*.pt"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    print(f"OpenNMT-py: {model.name} after {minutes:.1f} minutes", flush=True)
    decoding = ["-model", model, "-src", work / "test.pieces", "-output", work / "hypothesis.pieces", "-beam_size", "5"]
    # Its checkpoints are pickled, which torch refuses since 2.6 unless it is told that they are trusted.
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    subprocess.run([arguments.onmt / "onmt_translate", *decoding, "-batch_size", "64"], check=True, env=environment)
    processor = SentencePieceProcessor(model_file=str(work / "tokenizer.model"))
    lines = (work / "hypothesis.pieces").read_text(encoding="utf-8").splitlines()
    hypothesis, reference = work / f"hypothesis.{languages[1]}", work / f"test.{languages[1]}"
    hypothesis.write_text("".join(f"{processor.decode(line.split())}\n" for line in lines), encoding="utf-8")
    files = [f"reference={reference}", f"language={languages[1]}"]
    subprocess.run(["mt-eval", f"hypothesis={hypothesis}", *files, "metrics.names=[bleu,bleu-lc]"], check=True)
    ours = arguments.run / "samples" / f"test.{languages[1]}.txt"
    subprocess.run(["mt-eval", "compare", hypothesis, ours, *files], check=True)


if __name__ == "__main__":
    main()
