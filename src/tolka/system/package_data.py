"""The files that come with the package: the checkout's own folders, else the copies inside the wheel."""

from functools import cache
from pathlib import Path
from typing import Any

from tolka.errors import TolkaError

_PACKAGE = Path(__file__).resolve().parents[1]


def config_dir() -> Path:
    """Return the folder of the YAML config groups, absolute: Hydra resolves a relative one against its caller."""
    return _find("configs", "_configs")


def sample_dir() -> Path:
    """Return the folder of the embedded English-Korean corpus."""
    return _find("data/sample", "_data/sample")


@cache
def table_beside(module: str) -> Any:
    """Return the content of the YAML file that has the name of a module, and is beside it. module: its `__file__`."""
    import yaml  # which the commands' --help can do without

    return yaml.safe_load(Path(module).with_suffix(".yaml").read_text(encoding="utf-8"))


def _find(in_checkout: str, in_wheel: str) -> Path:
    checkout = _PACKAGE.parents[1]
    for folder in (checkout / in_checkout, _PACKAGE / in_wheel):
        # Outside a checkout, an unrelated folder beside site-packages may have the same name.
        if folder.is_dir() and (folder.is_relative_to(_PACKAGE) or (checkout / "src" / "tolka").is_dir()):
            return folder
    raise TolkaError(f"the installation lacks its folder '{in_wheel}'; install tolka again")
