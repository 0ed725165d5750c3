"""Our settings by their names in other programs, which foreign_names.yaml lists."""

import functools
import re

from tolka.config.choices import known_keys
from tolka.system.package_data import table_beside
from tolka.text.scripts import code_named

_MOST_OWN = 3  # of our settings that end in the name, as input.format and output.format do; more are no help


def meaning(name: str, value: str, command: str) -> str:
    """Return a sentence, after a blank, on what another program's setting is called here; "" where that is unknown.

    value: as it was typed. command: train, translate or evaluate; "" for others.
    """
    if command not in table_beside(__file__)["sentences"]:
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
    """Return the names elsewhere -> the sentence that helps."""
    rows = table_beside(__file__)["sentences"].get(command, {})
    return {name: sentence for names, sentence in rows.items() for name in names.split()}


@functools.cache
def _ours(command: str) -> dict[str, str]:
    """Return the names elsewhere -> the first of our settings of that name that a command has."""
    short = ("hypothesis", "reference", "source", "language") if command == "evaluate" else ()
    known = {*known_keys(command), *short}
    # Reversed, so that of several settings with a name the first remains.
    rows = reversed(table_beside(__file__)["names"].items())
    return {name: ours for ours, names in rows if ours in known for name in names.split()}
