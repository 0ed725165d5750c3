"""What older versions wrote, in the words of this one."""

from collections.abc import Mapping
from typing import Any

# (group, key) -> old value: new value.
_RENAMED = {("model", "share_embeddings"): {"decoder": "target_output"}}


def in_words_of_today(config: Mapping[str, Any]) -> dict[str, Any]:
    """A saved training configuration; whatever it does not know stays as it is."""
    found = dict(config)
    for (group, key), words in _RENAMED.items():
        options = found.get(group)
        if isinstance(options, Mapping) and options.get(key) in words:
            found[group] = {**options, key: words[options[key]]}
    return found
