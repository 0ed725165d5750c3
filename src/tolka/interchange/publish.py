"""Publish a model on the Hugging Face Hub."""

import re
import tempfile
from pathlib import Path

from tolka.errors import ConfigError, DataError, TolkaError
from tolka.model_directory.card import REPOSITORY
from tolka.model_directory.file_names import CARD
from tolka.model_directory.public_copy import write_public_copy
from tolka.system.progress import Say, silent
from tolka.version import __version__


def publish(model: Path, repository: str, private: bool = False, licence: str = "", say: Say = silent) -> str:
    """Verify a model directory, upload a copy without local paths and resume state, and return its address.

    repository: OWNER/NAME; it is created if it is missing. licence: instead of run.licence, unless empty. ConfigError
    for a wrong name, a missing package or token; DataError, with the reason, if the Hub refuses it.
    """
    try:
        import huggingface_hub as hub
    except ImportError:
        raise ConfigError("mt-train publish needs the package huggingface_hub: pip install 'tolka[hub]'") from None
    if not hub.get_token():
        raise ConfigError("there is no token for the Hub: run `hf auth login`, or set HF_TOKEN")
    with tempfile.TemporaryDirectory(prefix="tolka-publish-") as name:
        folder = _public_copy(model, Path(name), repository, licence, say)
        try:
            api = hub.HfApi(library_name="tolka")
            api.create_repo(repository, private=private, exist_ok=True)
            # `exist_ok` accepts a repository of either kind: a private upload must not end up in a public one.
            if private and not api.repo_info(repository).private:
                raise ConfigError(f"{repository} is there already, and public: nothing was uploaded; make it private")
            api.upload_folder(repo_id=repository, folder_path=folder, commit_message=f"Upload with tolka {__version__}")
        except TolkaError:
            raise
        except Exception as error:  # of the library, of its HTTP client or of the system, which differ by version
            reason = " ".join(f"{type(error).__name__}: {error} {error.__cause__ or ''}".split())[:300]
            raise DataError(
                f"{repository} is not published ({reason}): the Hub must be reached, by a token that may write there "
                "(`hf auth login`)"
            ) from None
    return f"{api.endpoint}/{repository}"


def preview(model: Path, repository: str, licence: str = "", say: Say = silent) -> str:
    """Return what `publish` would upload: files with their sizes, licence and the card's beginning; needs no token."""
    with tempfile.TemporaryDirectory(prefix="tolka-publish-") as name:
        folder = _public_copy(model, Path(name), repository, licence, say)
        sizes = {path.relative_to(folder): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
        head = (folder / CARD).read_text(encoding="utf-8").partition("\n## ")[0]
    named = re.search(r"^license: (.+)", head, re.MULTILINE)
    lines = [
        f"{repository} would get {len(sizes)} files with {sum(sizes.values()) / 1e6:.1f} MB; nothing was uploaded",
        *(f"{size:>13,}  {path}" for path, size in sizes.items()),
        f"licence: {named[1] if named else 'none, as neither --licence nor run.licence names one'}",
        f"{CARD} begins:\n\n{head}",
    ]
    return "\n".join(lines)


def _public_copy(model: Path, folder: Path, repository: str, licence: str, say: Say) -> Path:
    """Write what is published into an empty folder, with notes on what is left out of it; return the folder."""
    if not REPOSITORY.fullmatch(repository):
        raise ConfigError(f"'{repository}' is not a name on the Hub: write OWNER/NAME, as in ann/captions-en-de")
    copy = write_public_copy(model, folder, repository, licence)
    if copy.shortened:
        say(f"note: published without their folders: {', '.join(copy.shortened)}")
    if copy.left_out:
        say(f"note: not published: {', '.join(copy.left_out)}")
    return folder
