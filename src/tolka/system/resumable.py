"""A file that is written step by step, so that another process can continue after one that was ended."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tolka.errors import DataError, reason_of
from tolka.system.atomic import is_at, name_in_disk_errors, partial, replace_text, try_lock
from tolka.system.number_format import json_text
from tolka.system.whole_files import check_is_file, read_text

_FORMAT = 2


class ResumableFile:
    """The unfinished content of a file, in a hidden file beside it, and a record of how far it is complete.

    identity: what the content depends on, by name, as JSON has it. state: what `record` was last given; {} if there is
    nothing yet.
    """

    def __init__(self, final: Path, identity: Mapping[str, Any]) -> None:
        """Open the content of an interrupted process, or a new one; DataError if the identity is another."""
        # As JSON returns it, with lists for tuples, to compare equal with a record that was read.
        self.path, self.identity, self.state = partial(final), json.loads(json.dumps(identity)), dict[str, Any]()
        self._final, self._record = final, record_path(final)
        size = self._recorded_size()
        self._stream = open(self.path, "r+b" if size else "ab")  # noqa: SIM115  (closed by `close`)
        if not (try_lock(self._stream) and is_at(self.path, self._stream)):
            self._stream.close()
            raise DataError(f"{final}: another process writes it at this moment")
        self._stream.truncate(size)  # what follows was written after the last record, and may be incomplete
        self._stream.seek(size)

    def _recorded_size(self) -> int:
        """Read the record of an interrupted process; return how many bytes of its content are complete."""
        try:
            check_is_file(self.path)
            record = read_record(self._record)
            before, state, size = dict(record["identity"]), dict(record["state"]), int(record["bytes"])
            if record["format"] != _FORMAT or self.path.stat().st_size < size:
                raise ValueError("bytes are missing")
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{self._record} is damaged ({reason_of(error)}); remove it to begin again") from None
        for name in [*before, *self.identity]:
            if before.get(name) != self.identity.get(name):
                raise DataError(
                    f"{self._final} cannot be resumed: {name} was {before.get(name)!r} when it was begun, and is "
                    f"{self.identity.get(name)!r} now; change it back, or remove {self.path} to begin again"
                )
        self.state = state
        return size

    def write(self, data: bytes) -> None:
        """Append bytes; they are kept once `record` has been called."""
        with name_in_disk_errors(self._final):
            self._stream.write(data)

    def flush(self) -> None:
        """Do nothing: nobody reads the content yet."""

    def record(self, state: Mapping[str, Any]) -> None:
        """Make all that was written survive the end of the process, and of the machine. state: plain values."""
        # The content first: a record must never say more than the disk has.
        self._sync()
        self.state = dict(state)
        record = {"format": _FORMAT, "identity": self.identity, "bytes": self._stream.tell(), "state": self.state}
        write_record(self._record, record)

    def _sync(self) -> None:
        with name_in_disk_errors(self._final):
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """Give the file its name."""
        self._sync()
        self._stream.close()
        os.replace(self.path, self._final)
        self._record.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove what was kept, once it is of no further use."""
        self.state = {}
        self._record.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; remove it if nothing was recorded."""
        self._stream.close()
        if not self.state:
            self.path.unlink(missing_ok=True)


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write plain values as JSON that `read_record` takes as long as nobody has edited it."""
    plain = json.loads(json_text(record))
    replace_text(path, json_text({**plain, "checksum": _checksum(plain)}, ensure_ascii=False, indent=1))


def read_record(path: Path) -> dict[str, Any]:
    """Return the values that `write_record` wrote; OSError, or a ValueError, KeyError or the like if it did not."""
    record: dict[str, Any] = json.loads(read_text(path))
    if record.pop("checksum") != _checksum(record):
        raise ValueError("it was changed")
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    """Return a checksum of a record."""
    # Nobody but this module is meant to write one: what was edited by hand does not describe the bytes.
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def record_path(final: Path) -> Path:
    """Return the path of the record that belongs to `partial(final)`."""
    content = partial(final)
    return content.with_name(f"{content.name}.json")


@contextmanager
def resumable_file(final: Path, identity: Mapping[str, Any]) -> Iterator[ResumableFile]:
    """Open a ResumableFile that gets its name if the block ends without an error, and else keeps what was recorded."""
    file = ResumableFile(final.resolve(), identity)  # a link stays a link
    try:
        yield file
        file.finish()
    finally:
        file.close()
