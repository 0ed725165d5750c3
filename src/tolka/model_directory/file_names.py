"""File names in a model directory, except the manifest's and the tokenizer's."""

CONFIG, WEIGHTS, SCORES, CARD = "config.yaml", "model.safetensors", "scores.json", "README.md"
ADAPTER, BASE = "adapter.safetensors", "base"
STATE_TENSORS, STATE_FACTS, STATE_SHARDS = "state/tensors.safetensors", "state/state.json", "state/shards"
SHARDS_IN_PROGRESS = ".shards"  # in a run's folder, while the processes write them
EXPORTED = "tolka.json"  # in a folder for CTranslate2: what mt-translate needs besides
