"""Toolkits that train from a YAML file: what stands in it, the command, and how their log says tokens a second."""

import re
from pathlib import Path
from typing import Any

import yaml

from work import DROPOUT, HEADS, INNER, LAYERS, PEAK, SMOOTHING, TOKENS, VOCABULARY, WARMUP, WIDTH, Work


def _vocabulary(work: Work, folder: Path, counted: bool) -> Path:
    """One piece a line, as these toolkits read them, without the special ones; counted: with a count beside it."""
    pieces = (work.folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
    path = folder / "vocabulary.txt"
    path.write_text("".join(f"{piece}\t1\n" if counted else f"{piece}\n" for piece in pieces), encoding="utf-8")
    return path


def _noam(peak: float) -> float:
    """The factor of their noam schedule that has this peak."""
    return float(peak * (WIDTH * WARMUP) ** 0.5)


def _shared(work: Work, folder: Path) -> dict[str, Any]:
    """What OpenNMT-py and Eole, which comes from it, both have at the top."""
    vocabulary = str(_vocabulary(work, folder, counted=True))
    texts = {
        part: {
            "path_src": str(work.prefix(f"{name}.en")),
            "path_tgt": str(work.prefix(f"{name}.de")),
            "transforms": ["sentencepiece"],
        }
        for part, name in (("corpus_1", "train"), ("valid", "test"))
    }
    return {
        "save_data": str(folder / "data"),
        "data": texts,
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "share_vocab": True,
        "src_vocab_size": VOCABULARY,
        "tgt_vocab_size": VOCABULARY,
    }


def _training(updates: int) -> dict[str, Any]:
    """The same of the training."""
    return {
        "world_size": 1,
        "gpu_ranks": [],
        "batch_type": "tokens",
        "batch_size": TOKENS,
        "normalization": "tokens",
        "accum_count": [1],
        "bucket_size": 29000,
        "num_workers": 0,
        "prefetch_factor": 100,
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": _noam(PEAK),
        "decay_method": "noam",
        "warmup_steps": WARMUP,
        "max_grad_norm": 1.0,
        "dropout": [DROPOUT],
        "attention_dropout": [0.0],
        "label_smoothing": SMOOTHING,
        "train_steps": updates,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
    }


def _write(folder: Path, config: dict[str, Any]) -> str:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return str(path)


def opennmt(work: Work, folder: Path, updates: int, window: int) -> list[str]:
    """OpenNMT-py 3.5; writes its configuration."""
    config = {
        **_shared(work, folder),
        "src_subword_model": str(work.model),
        "tgt_subword_model": str(work.model),
        **_training(updates),
        "model_dtype": "fp32",
        "dropout_steps": [0],
        "param_init": 0,
        "param_init_glorot": True,
        "report_every": window,
        "save_model": str(folder / "model"),
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "enc_layers": LAYERS,
        "dec_layers": LAYERS,
        "heads": HEADS,
        "hidden_size": WIDTH,
        "word_vec_size": WIDTH,
        "transformer_ff": INNER,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
    }
    return ["onmt_train", "-config", _write(folder, config)]


def eole(work: Work, folder: Path, updates: int, window: int) -> list[str]:
    """Eole 0.6; writes its configuration."""
    config = _shared(work, folder)
    config["data"]["corpus_1"]["weight"] = 1
    config |= {
        "overwrite": True,
        "report_every": window,
        "n_sample": 0,
        "transforms_configs": {
            "sentencepiece": {"src_subword_model": str(work.model), "tgt_subword_model": str(work.model)}
        },
        "training": {
            **_training(updates),
            "compute_dtype": "fp32",
            "use_amp": False,
            "valid_batch_size": 64,
            "adam_beta1": 0.9,
            "param_init": 0.0,
            "param_init_method": "xavier_uniform",
            "log_attention_entropy": False,
            "model_path": str(folder / "model"),
            "keep_checkpoint": 1,
        },
        "model": {
            "architecture": "transformer",
            "hidden_size": WIDTH,
            "transformer_ff": INNER,
            "heads": HEADS,
            "layers": LAYERS,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_ffnbias": True,
            "add_final_linear_bias": True,
            "embeddings": {"word_vec_size": WIDTH, "position_encoding_type": "SinusoidalInterleaved"},
        },
    }
    return ["eole", "train", "-c", _write(folder, config)]


def joeynmt(work: Work, folder: Path, updates: int, window: int) -> list[str]:
    """JoeyNMT 2.3; writes its configuration. It has no buckets: so many padded tokens are about TOKENS real ones."""
    vocabulary = _vocabulary(work, folder, counted=False)
    side = f"""
    level: bpe
    lowercase: false
    max_length: 100
    voc_file: {vocabulary}
    tokenizer_type: sentencepiece
    tokenizer_cfg: {{model_file: {work.model}, pretokenizer: none}}"""
    stack = f"""
    type: transformer
    num_layers: {LAYERS}
    num_heads: {HEADS}
    embeddings: {{embedding_dim: {WIDTH}, scale: true, dropout: {DROPOUT}}}
    hidden_size: {WIDTH}
    ff_size: {INNER}
    dropout: {DROPOUT}
    layer_norm: pre"""
    (folder / "config.yaml").write_text(f"""
name: bench
joeynmt_version: "2.3.0"
model_dir: {folder / "model"}
use_cuda: false
fp16: false
random_seed: 1
data:
  train: {work.prefix("train")}
  dev: {work.prefix("test")}
  test: {work.prefix("test")}
  dataset_type: plain
  src:
    lang: en{side}
  trg:
    lang: de{side}
  special_symbols:
    {{unk_token: <unk>, unk_id: 0, pad_token: <pad>, pad_id: 1, bos_token: <s>, bos_id: 2, eos_token: </s>, eos_id: 3}}
testing: {{batch_size: 64, batch_type: sentence, beam_size: 1, eval_metrics: [bleu]}}
training:
  optimizer: adam
  adam_betas: [0.9, 0.98]
  scheduling: warmupinversesquareroot
  learning_rate: {PEAK}
  learning_rate_warmup: {WARMUP}
  learning_rate_min: 0.0
  label_smoothing: {SMOOTHING}
  loss: crossentropy
  normalization: tokens
  clip_grad_norm: 1.0
  weight_decay: 0.0
  batch_size: 9150
  batch_type: token
  batch_multiplier: 1
  early_stopping_metric: ppl
  epochs: 100
  updates: {updates}
  validation_freq: 1000000
  logging_freq: {window}
  shuffle: true
  keep_best_ckpts: 1
model:
  initializer: xavier_uniform
  bias_initializer: zeros
  embed_initializer: xavier_uniform
  tied_embeddings: true
  tied_softmax: true
  encoder:{stack}
  decoder:{stack}
""")
    return ["-m", "joeynmt", "train", str(folder / "config.yaml"), "--skip-test"]


_SOURCE_AND_TARGET = re.compile(r"Step\s+\d+/.*?(\d+)/\s*(?P<rate>\d+) tok/s")
# Name -> (writes the configuration and gives the command, what in a line of its log is target tokens a second).
TOOLKITS = {
    "opennmt-py": (opennmt, _SOURCE_AND_TARGET),
    "eole": (eole, _SOURCE_AND_TARGET),
    "joeynmt": (joeynmt, re.compile(r"Tokens per Sec:\s*(?P<rate>\d+)")),
}
