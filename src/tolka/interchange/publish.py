"""Publish a model on the Hugging Face Hub."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tolka.errors import ConfigError, DataError
from tolka.model_directory.card import REPOSITORY
from tolka.model_directory.public_copy import write_public_copy
from tolka.system.progress import Say, silent
from tolka.version import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def publish(model: Path, repository: str, private: bool = False, licence: str = "", say: Say = silent) -> str:
    """Verify a model directory, upload a copy without local paths and resume state, and return its address.

    repository: OWNER/NAME; it is created if it is missing. licence: instead of run.licence, unless empty. ConfigError
    for a wrong name, a missing package or token; DataError, with the reason, if the Hub refuses it.
    """
    try:
        import huggingface_hub as hub
    except ImportError:
        raise ConfigError("mt-train publish needs the package huggingface_hub: pip install 'tolka[hub]'") from None
    if not REPOSITORY.fullmatch(repository):
        raise ConfigError(f"'{repository}' is not a name on the Hub: write OWNER/NAME, as in ann/captions-en-de")
    if not hub.get_token():
        raise ConfigError("there is no token for the Hub: run `hf auth login`, or set HF_TOKEN")
    with tempfile.TemporaryDirectory(prefix="tolka-publish-") as name:
        folder = Path(name)
        copy = write_public_copy(model, folder, repository, licence)
        if copy.shortened:
            say(f"note: published without their folders: {', '.join(copy.shortened)}")
        if copy.left_out:
            say(f"note: not published: {', '.join(copy.left_out)}")
        with _plain_errors(repository):
            return _upload(hub.HfApi(library_name="tolka"), folder, repository, private)


def _upload(api: "HfApi", folder: Path, repository: str, private: bool) -> str:
    api.create_repo(repository, private=private, exist_ok=True)
    # `exist_ok` accepts a repository of either kind: a private upload must not end up in a public one.
    if private and not api.repo_info(repository).private:
        raise ConfigError(f"{repository} is there already, and public: nothing was uploaded; make it private first")
    api.upload_folder(repo_id=repository, folder_path=folder, commit_message=f"Upload with tolka {__version__}")
    return f"{api.endpoint}/{repository}"


@contextmanager
def _plain_errors(repository: str) -> Iterator[None]:
    """Raise the Hub's refusals, and a failed connection, as errors of one line."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    # Errors of the HTTP library of huggingface_hub, which differs by version.
    of_requests = cast(tuple[type[Exception], ...], HfHubHTTPError.__bases__)
    try:
        yield
    except HFValidationError as error:
        raise ConfigError(f"'{repository}' is not a name on the Hub: {' '.join(str(error).split())}") from None
    except OfflineModeIsEnabled:
        raise DataError(f"{repository} cannot be published offline: unset HF_HUB_OFFLINE") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        reason = {401: "the token is not valid: run `hf auth login`", 403: "the token may not write there"}.get(status)
        answer = " ".join(str(error.server_message or error).split())[:300]
        raise DataError(f"the Hub did not take {repository} ({status}): {reason or answer}") from None
    except (ValueError, RuntimeError) as error:  # metadata or files that it rejects, and of its library in Rust
        reason = " ".join(f"{error} {error.__cause__ or ''}".split())[:300]
        raise DataError(f"the Hub did not take {repository}: {reason}") from None
    except of_requests as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"the Hub cannot be reached ({reason}): {repository} is not published") from None
