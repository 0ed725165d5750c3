"""Test sets by sacreBLEU's names, which it downloads once and keeps: sacrebleu:wmt22."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tolka.errors import ConfigError, DataError, reason_of
from tolka.options.suggestions import did_you_mean, some_of
from tolka.text.direction import Direction
from tolka.text.scripts import plain_code

SACREBLEU = "sacrebleu:"


def sacrebleu_files(entry: str, direction: Direction, key: str) -> tuple[Path, Path]:
    """Return the files of sources and of first references of a set, in the direction of the text.

    entry: as it is typed, as in sacrebleu:wmt22. key: of its setting. ConfigError for a set or a direction that
    sacreBLEU does not have; DataError if it cannot be downloaded.
    """
    sets: dict[str, Any] = import_module("sacrebleu.dataset").DATASETS
    name, pair = entry.removeprefix(SACREBLEU), "-".join(map(plain_code, direction))
    if name not in sets:
        raise ConfigError(f"{key} ({entry}): sacreBLEU has no such set.{did_you_mean(name, sets)}")
    if pair not in sets[name].langpairs:
        known = some_of(sorted(sets[name].langpairs), f"sacrebleu --list -t {name}")
        raise ConfigError(f"{key} ({entry}) is not in {pair}, but in {known}")
    try:
        source, reference = map(Path, (sets[name].get_source_file(pair), sets[name].get_reference_files(pair)[0]))
        if not (source.is_file() and reference.is_file()):
            raise FileNotFoundError(source)
    except (Exception, SystemExit) as error:
        raise DataError(
            f"{key}: {entry} is not on this machine, and cannot be downloaded ({reason_of(error)}); with a "
            f"network, sacrebleu -t {name} -l {pair} --echo src gets it, into ~/.sacrebleu"
        ) from None
    return source, reference
