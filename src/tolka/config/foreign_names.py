"""Our settings by their names in Lightning, Hugging Face, fairseq, OpenNMT, Sockeye, Marian, sacreBLEU and YAML."""

import functools
import re

from tolka.config.choices import known_keys
from tolka.text.scripts import code_named

# Our setting: its names elsewhere, with the same values. Dashes are underscores: --max-tokens is max_tokens here. Where
# several settings have a name, the first that the command has is meant.
_NAMES = """
run.name: exp_name experiment_name task_name run_id
run.dir: save_dir output_dir save_model checkpoint_dir destdir default_root_dir model_dir log_dir run.root run.path
run.seed: seed random_seed rng_seed manual_seed
run.init_from: finetune_from_model train_from model_name_or_path pretrained pretrained_model init_checkpoint params
run.prepared: prepared_data data_bin cache_dir
corpus.source: source_lang src_lang source_language s
corpus.target: target_lang tgt_lang target_language t
corpus.train: train_file trainpref train_data train_sets train_path
corpus.valid: validation_file validpref valid_data valid_sets val_data validation_data dev_data dev
corpus.test: test_file testpref test_data test_sets
corpus.path: dataset dataset_name
corpus.root: data_dir data_path
tokenizer.vocab_size: vocab_size src_vocab_size tgt_vocab_size num_words dim_vocabs vocabulary_size bpe_size
tokenizer.shared: share_vocab shared_vocab joined_dictionary
tokenizer.model: src_vocab tgt_vocab vocab vocabs src_subword_model sentencepiece_model spm tokenizer_name srcdict
batching.tokens: max_tokens mini_batch_words batch_tokens tokens_per_batch
batching.sentences: max_sentences
batching.max_length: max_seq_len max_source_positions max_target_positions src_seq_length max_source_length
model.d_model: hidden_size hidden_dim d_hidden embed_dim encoder_embed_dim num_embed transformer_model_size dim_emb
model.d_ff: transformer_ff encoder_ffn_embed_dim ffn_dim intermediate_size transformer_feed_forward_num_hidden
model.hidden: rnn_size rnn_num_hidden
model.heads: num_heads n_heads n_head encoder_attention_heads transformer_attention_heads num_attention_heads
model.layers: num_layers n_layers encoder_layers enc_depth enc_layers num_hidden_layers
model.decoder_layers: dec_depth dec_layers
model.dropout: dropout dropout_rate hidden_dropout p_dropout transformer_dropout
model.cell: rnn_type
optimizer.lr: learning_rate learn_rate lr peak_lr base_lr max_lr initial_learning_rate
optimizer.weight_decay: weight_decay wd
optimizer.beta1: adam_beta1
optimizer.beta2: adam_beta2
optimizer.eps: adam_epsilon adam_eps
scheduler.warmup: warmup warmup_steps warmup_updates lr_warmup learning_rate_warmup num_warmup_steps
trainer.updates: max_update max_updates max_steps train_steps num_steps num_train_steps total_steps max_iters iterations
trainer.epochs: epochs epoch num_epochs n_epochs max_epochs max_epoch num_train_epochs max_num_epochs
trainer.validate_every: valid_steps eval_steps valid_freq eval_interval val_check_interval checkpoint_interval
trainer.log_every: logging_steps log_interval report_every disp_freq log_every_n_steps
trainer.patience: early_stopping early_stopping_patience max_num_checkpoint_not_improved
trainer.metric: best_checkpoint_metric metric_for_best_model optimized_metric monitor
trainer.accumulate: update_freq accum_count gradient_accumulation_steps accumulate_grad_batches optimizer_delay
trainer.clip_norm: max_grad_norm gradient_clip_val grad_clip gradient_clipping_threshold clip
trainer.label_smoothing: label_smoothing label_smoothing_factor
trainer.ema: ema_decay
trainer.keep_best: save_total_limit keep_best_checkpoints save_top_k
trainer.keep_every: save_steps save_interval_updates save_checkpoint_steps save_freq
trainer.average: keep_last_epochs num_checkpoints_to_average
trainer.devices: world_size distributed_world_size gpus n_gpus num_gpus ngpus nproc_per_node
trainer.parallel: strategy distributed_backend
trainer.threads: num_threads cpu_threads omp_num_threads num_workers workers dataloader_num_workers num_proc max_workers
trainer.recompute: gradient_checkpointing checkpoint_activations
trainer.max_minutes: max_time
tracking.project: wandb_project project mlflow_experiment
search.beam_size: beam beams num_beams beam_width generation_num_beams
search.length_penalty: lenpen length_penalty length_penalty_alpha alpha normalize
search.n_best: nbest n_best num_return_sequences nbest_size
search.no_repeat_ngram: no_repeat_ngram_size block_ngram_repeat
search.top_k: sampling_topk random_sampling_topk
search.top_p: sampling_topp
search.glossary: phrase_table terminology
search.groups: diverse_beam_groups
decoding.tokens: max_tokens mini_batch_words
decoding.threads: num_threads cpu_threads inter_threads intra_threads
decoding.precision: compute_type dtype
decoding.max_length: max_seq_len max_input_length
decoding.split: sentence_split
hypothesis: input i hyp hypotheses sys system translations
reference: ref refs references r
source: src sources
language: lang tgt_lang target_lang
metrics.names: metrics metric m
metrics.tokenizer: tokenize tok
"""
_MOST_OWN = 3  # of our settings that end in the name, as input.format and output.format do; more are no help
_BATCH = "batching.tokens=N is a batch's padded tokens on a side, and batching.sentences=N its sentences"
_CORPUS = "corpus=files corpus.source=en corpus.target=de corpus.train=PREFIX corpus.valid=PREFIX"
_TOKENS = "decoding.tokens=N is a batch's padded source tokens"
_FILES = "a text is named alone: mt-translate MODEL FILE, or echo ... | mt-translate MODEL"
# Names elsewhere, and the sentence that helps, for each command. Where several have a name, the last is meant.
_SENTENCES = {
    "train": f"""
logger report_to tensorboard_logdir wandb tensorboard mlflow: tracking=wandb, tensorboard, mlflow or trackio
fp16 bf16 amp mixed_precision: trainer.precision=fp16 or bf16
batch_size train_batch_size per_device_train_batch_size mini_batch batch_type b: {_BATCH}
paths path logs: run.dir is a run's folder, corpus.root that of the text, and run.prepared the cache
data datamodule dataset_config_name: {_CORPUS}
source src train_src: {_CORPUS}, where PREFIX stands for PREFIX.en and PREFIX.de
ckpt_path checkpoint resume resume_from_checkpoint restore_file reload continue: the same command resumes its run;
    run.init_from=MODEL starts from a model
callbacks: trainer.patience, trainer.keep_best and trainer.average do what most are for; plugins=[my_module] has one's
    own, which tracking=[name] chooses
hparams_search: -m hydra/sweeper=optuna 'optimizer.lr=tag(log, interval(1e-4,1e-2))'
arch a model_type encoder_type decoder_type encoder decoder architecture: model=transformer_base, model=lstm_attention
    and so on
model.d_v: values are as wide as keys, d_model / heads; models that were trained with others keep them
model.max_positions: there are 512 learned positions; later ones share the last
model.decoder_start: the decoder starts from <s>; models imported from M2M-100 keep </s>
model.scale_embeddings: embeddings are multiplied by sqrt(d_model), but for imported models without that
optim optimizer_type: optimizer=adamw, adam, muon, sgd or adafactor
lr_scheduler lr_scheduler_type decay_method learning_rate_scheduler_type lr_decay: scheduler=inverse_sqrt, noam, linear,
    cosine, wsd (with scheduler.horizon=0 it waits for a plateau) or constant
warmup_ratio: scheduler.warmup=N is a number of updates
criterion: the loss is cross-entropy; trainer.label_smoothing smooths it
adam_betas: optimizer.beta1=0.9 optimizer.beta2=0.98
share_all_embeddings tied_embeddings_all share_embeddings weight_tying_type: model.share_embeddings=all, with
    tokenizer.shared=true
share_decoder_input_output_embed share_decoder_embeddings tied_embeddings tie_word_embeddings:
    model.share_embeddings=target_output
word_vec_size src_word_vec_size tgt_word_vec_size: model.d_model=N is the width of embeddings too
gpu_ranks cuda_visible_devices gpu accelerator device_id: trainer.device=cuda, cuda:N or cpu; trainer.devices=2 takes
    two GPUs
use_cpu no_cuda cpu trainer=cpu: trainer.device=cpu
cuda use_cuda trainer=gpu: trainer.device=cuda
trainer=ddp trainer=ddp_sim trainer=fsdp: trainer.devices=2, or torchrun; trainer.parallel says how
trainer=mps: trainer.device=cpu or cuda
workspace mini_batch_fit auto_scale_batch_size: batching.tokens=auto
check_val_every_n_epoch evaluation_strategy eval_strategy validate_interval: trainer.validate_every=N updates
debug fast_dev_run limit_train_batches: trainer.updates=20 makes a short training
config config_file yaml: --config-dir DIR --config-name NAME
user_dir custom_module: plugins=[my_module]
push_to_hub hub_model_id: mt-train publish MODEL OWNER/NAME, after the training
load_best_model_at_end predict_with_generate do_train do_eval: that is always done: best/ is the best model, and it is
    tested
average_decay exponential_smoothing: trainer.ema=0.9999, which is 1 less that number
overwrite_output_dir overwrite force: another run.name makes another run
after stop_after: trainer.epochs=N or trainer.updates=N
tags extras verbose v torch_compile compile_model: that does not exist; leave it out
""",
    "translate": f"""
input i src source file text input_file f: {_FILES}
output out o output_file: -o FILE, which is all or nothing
model models m path checkpoint ckpt_path: the model comes first, as it is: mt-translate MODEL FILE
batch_size per_device_eval_batch_size mini_batch: {_TOKENS}
b: search.beam_size=N is the beam; {_TOKENS}
max_length max_new_tokens max_len_b max_len: search.max_length_extra=N, and search.max_length_factor=F times the
    source's
fp16 bf16 int8 quantize: decoding.precision=fp16, bf16 or int8
cpu use_cpu: decoding.device=cpu
cuda use_cuda gpu gpus accelerator device_id: decoding.device=cuda, or cuda:N
sampling do_sample: search=sampling
prefix_size target_prefix: search.prefix=FILE has the beginning of each translation
remove_bpe post_process detokenize: that is always done; leave it out
source_lang target_lang src_lang tgt_lang s t: the model knows its languages; leave it out
""",
    "evaluate": f"""
model ckpt_path path: mt-eval MODEL source=FILE reference=FILE
test_set t: hypothesis=FILE reference=FILE language=de; test sets are files
confidence ci: metrics.bootstrap=N
paired_bs: mt-eval compare A B reference=FILE
batch_size: {_TOKENS}
b: search.beam_size=N is the beam; {_TOKENS}
l language_pair: language=de, the code of the references' language
cuda use_cuda gpu gpus accelerator device_id: decoding.device=cuda, or cuda:N
""",
}


def meaning(name: str, value: str, command: str) -> str:
    """Return a sentence, after a blank, on what another program's setting is called here; "" where that is unknown.

    value: as it was typed. command: train, translate or evaluate; "" for others.
    """
    if command not in _SENTENCES:
        return ""
    plain = name.lstrip("-+~").lower().replace("-", "_")
    known, group = known_keys(command), re.split(r"[./]", plain)[0]
    # From the most to the least specific: trainer=cpu, model.d_v, max_tokens of trainer.max_tokens, the group alone.
    for each in (f"{plain}={value}", plain, plain.rpartition(".")[2], "" if group in known else group):
        if each in (sentences := _sentences(command)):
            is_ours = re.match(r"-|mt-|\S*[=.[]", sentences[each])  # a setting or a command
            return f" Here it is: {sentences[each]}" if is_ours else f" Here, {sentences[each]}"
        if each in (ours := _ours(command)):
            return f" Here it is {_typed(ours[each], value)}"
    own = [_typed(key, value) for key in known if name[:1] == "-" and f".{key}".endswith(f".{plain}")]
    return f" Here it is {' or '.join(own)}" if 0 < len(own) <= _MOST_OWN else ""


def _typed(key: str, value: str) -> str:
    """Return a setting as it is typed here: with the code of a language that is named."""
    is_language = key in ("language", "files.language", "corpus.source", "corpus.target")
    return f"{key}={(is_language and code_named(value)) or value or 'VALUE'}"


@functools.cache
def _sentences(command: str) -> dict[str, str]:
    lines = _SENTENCES[command].strip().replace("\n    ", " ").split("\n")  # an indented line continues the one above
    rows = [line.split(": ", 1) for line in lines]
    return {name: sentence for names, sentence in rows for name in names.split()}


@functools.cache
def _ours(command: str) -> dict[str, str]:
    """Return the names elsewhere -> the first of our settings of that name that a command has."""
    short = ("hypothesis", "reference", "source", "language") if command == "evaluate" else ()
    rows = [line.split(": ") for line in _NAMES.split("\n") if line]
    known = {*known_keys(command), *short}
    # Reversed, so that of several settings with a name the first remains.
    return {name: ours for ours, names in reversed(rows) if ours in known for name in names.split()}
