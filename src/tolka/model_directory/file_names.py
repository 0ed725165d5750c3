"""File names in a model directory, except the manifest's and the tokenizer's."""

CONFIG, WEIGHTS, SCORES, CARD = "config.yaml", "model.safetensors", "scores.json", "README.md"
ADAPTER, BASE = "adapter.safetensors", "base"
STATE_TENSORS, STATE_FACTS = "state/tensors.safetensors", "state/state.json"
EXPORTED = "tolka.json"  # in a folder for CTranslate2: what mt-translate needs besides
