"""Toolkits that train from a YAML file: what stands in it, the command, and how their log says tokens a second."""

import re
from pathlib import Path

from work import DROPOUT, HEADS, INNER, LAYERS, PEAK, SMOOTHING, TOKENS, VOCABULARY, WARMUP, WIDTH, Work


def _vocabulary(work: Work, folder: Path, counted: bool) -> Path:
    """One piece a line, as these toolkits read them, without the special ones; counted: with a count beside it."""
    pieces = (work.folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
    path = folder / "vocabulary.txt"
    path.write_text("".join(f"{piece}\t1\n" if counted else f"{piece}\n" for piece in pieces), encoding="utf-8")
    return path


def _noam(peak: float) -> float:
    """The factor of their noam schedule that has this peak."""
    return peak * (WIDTH * WARMUP) ** 0.5


def opennmt(work: Work, folder: Path, updates: int, window: int) -> list[str]:
    """OpenNMT-py 3.5; writes its configuration."""
    vocabulary = _vocabulary(work, folder, counted=True)
    (folder / "config.yaml").write_text(f"""
save_data: {folder / "data"}
src_vocab: {vocabulary}
tgt_vocab: {vocabulary}
share_vocab: true
src_vocab_size: {VOCABULARY}
tgt_vocab_size: {VOCABULARY}
data:
  corpus_1: {{path_src: {work.prefix("train.en")}, path_tgt: {work.prefix("train.de")}, transforms: [sentencepiece]}}
  valid: {{path_src: {work.prefix("test.en")}, path_tgt: {work.prefix("test.de")}, transforms: [sentencepiece]}}
src_subword_model: {work.model}
tgt_subword_model: {work.model}
world_size: 1
gpu_ranks: []
model_dtype: fp32
batch_type: tokens
batch_size: {TOKENS}
normalization: tokens
accum_count: [1]
bucket_size: 29000
num_workers: 0
prefetch_factor: 100
optim: adam
adam_beta2: 0.98
learning_rate: {_noam(PEAK)}
decay_method: noam
warmup_steps: {WARMUP}
max_grad_norm: 1.0
dropout: [{DROPOUT}]
attention_dropout: [0.0]
dropout_steps: [0]
label_smoothing: {SMOOTHING}
param_init: 0
param_init_glorot: true
train_steps: {updates}
valid_steps: 1000000
save_checkpoint_steps: 1000000
report_every: {window}
save_model: {folder / "model"}
encoder_type: transformer
decoder_type: transformer
position_encoding: true
enc_layers: {LAYERS}
dec_layers: {LAYERS}
heads: {HEADS}
hidden_size: {WIDTH}
word_vec_size: {WIDTH}
transformer_ff: {INNER}
share_embeddings: true
share_decoder_embeddings: true
""")
    return ["onmt_train", "-config", str(folder / "config.yaml")]


def eole(work: Work, folder: Path, updates: int, window: int) -> list[str]:
    """Eole 0.6; writes its configuration."""
    vocabulary = _vocabulary(work, folder, counted=True)
    (folder / "config.yaml").write_text(f"""
save_data: {folder / "data"}
src_vocab: {vocabulary}
tgt_vocab: {vocabulary}
share_vocab: true
src_vocab_size: {VOCABULARY}
tgt_vocab_size: {VOCABULARY}
overwrite: true
report_every: {window}
n_sample: 0
data:
  corpus_1:
    path_src: {work.prefix("train.en")}
    path_tgt: {work.prefix("train.de")}
    transforms: [sentencepiece]
    weight: 1
  valid: {{path_src: {work.prefix("test.en")}, path_tgt: {work.prefix("test.de")}, transforms: [sentencepiece]}}
transforms_configs:
  sentencepiece: {{src_subword_model: {work.model}, tgt_subword_model: {work.model}}}
training:
  world_size: 1
  gpu_ranks: []
  compute_dtype: fp32
  use_amp: false
  batch_type: tokens
  batch_size: {TOKENS}
  valid_batch_size: 64
  normalization: tokens
  accum_count: [1]
  bucket_size: 29000
  num_workers: 0
  prefetch_factor: 100
  optim: adam
  adam_beta1: 0.9
  adam_beta2: 0.98
  learning_rate: {_noam(PEAK)}
  decay_method: noam
  warmup_steps: {WARMUP}
  max_grad_norm: 1.0
  dropout: [{DROPOUT}]
  attention_dropout: [0.0]
  label_smoothing: {SMOOTHING}
  param_init: 0.0
  param_init_method: xavier_uniform
  train_steps: {updates}
  valid_steps: 1000000
  save_checkpoint_steps: 1000000
  log_attention_entropy: false
  model_path: {folder / "model"}
  keep_checkpoint: 1
model:
  architecture: transformer
  hidden_size: {WIDTH}
  transformer_ff: {INNER}
  heads: {HEADS}
  layers: {LAYERS}
  share_embeddings: true
  share_decoder_embeddings: true
  add_qkvbias: true
  add_ffnbias: true
  add_final_linear_bias: true
  embeddings: {{word_vec_size: {WIDTH}, position_encoding_type: SinusoidalInterleaved}}
""")
    return ["eole", "train", "-c", str(folder / "config.yaml")]


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
