"""Documents that are ZIP archives of XML, which office programs write."""

import re
import stat
import zipfile
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from io import BytesIO

from tolka.documents.base import Document
from tolka.documents.markup import Element, Event, elements, with_attributes, xml_events
from tolka.documents.spliced import Splice
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.text.scripts import is_right_to_left

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # a Compound File: what Office wrote until 2003, and around what it encrypts
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)
_LARGEST = 2**30  # bytes, unpacked
_LARGEST_RATIO, _SMALL = 200, 2**26  # of all unpacked bytes to those of the file; not for so few

CODE_STYLE = re.compile("source|code|teletype|verbatim|preformatted|keyboard", re.IGNORECASE)
"""Names of styles for what is not translated, as LibreOffice, Word and converters call theirs."""


class ZippedDocument(Document):
    """A document of several files of XML, its parts; whatever is no text in them stays, byte for byte."""

    is_binary = True

    @abstractmethod
    def parts(self) -> Iterable[str]:
        """Return the names of the parts with texts. DataError for an archive that is no such document."""

    @abstractmethod
    def is_whole(self, start: Event) -> bool:
        """Return whether a start tag begins a paragraph, or what stays as it is."""

    @abstractmethod
    def texts_of(self, content: str, element: Element) -> Iterator[Text]:
        """Yield the texts of an element that is whole, or what changes in another tag with the language."""

    def events(self, name: str, content: str) -> Iterator[Event]:
        """Yield the events of a part."""
        return xml_events(content, f"{self.path}, {name}")

    def find(self, content: str, events: Iterable[Event]) -> Iterator[Text]:
        """Yield the texts of a part, or of an element in it."""
        for element in elements(events, self.is_whole):
            yield from self.texts_of(content, element)

    @cached_property
    def archive(self) -> zipfile.ZipFile:
        """The archive; DataError for what none is, and for one that should not be opened."""
        raw, kind = self.read_bytes(), self.endings[0]
        if raw.startswith(_OLE):
            raise DataError(f"{self.path} has a password, or is of the kind before 2007: save it without, as {kind}")
        try:
            archive = zipfile.ZipFile(BytesIO(raw))
        except _BROKEN as error:
            raise DataError(f"{self.path}: cannot be read ({error}); is it really {kind}, and complete?") from None
        if flaw := _flaw(archive.infolist(), len(raw)):
            raise DataError(f"{self.path}: {flaw}, which no office program writes; open it in one, and save it again")
        return archive

    def content(self, name: str) -> str:
        """Return the characters of a part; DataError if it is missing or damaged."""
        if name not in self.archive.NameToInfo:
            raise DataError(f"{self.path} lacks its part {name}; is it really {self.endings[0]}, and complete?")
        return self._read(name).decode("utf-8", "surrogateescape")  # no XML then

    def _read(self, name: str) -> bytes:
        entry = self.archive.getinfo(name)
        try:
            with self.archive.open(entry) as stream:
                return stream.read(entry.file_size)  # never more than it says that it has
        except _BROKEN as error:
            raise DataError(f"{self.path}: its part {name} is damaged ({error}); get the file once more") from None

    @property
    def turned(self) -> str:
        """The way of the new writing, rtl or ltr, if it is another one than before; "" otherwise."""
        source, target = map(is_right_to_left, self.direction)
        return "" if source == target or not self.direction.is_known else "rtl" if target else "ltr"

    def texts(self) -> Iterator[Text]:
        self._written = dict[str, tuple[Splice, list[str]]]()
        self._waiting = deque[str]()  # the part of each text that is not written yet
        for name in self.parts():
            content = self.content(name)
            self._written[name] = Splice(content), []
            for number, text in enumerate(self.find(content, self.events(name, content)), 1):
                text.where = f"{self.path}, {name}, {text.where or f'text {number}'}"
                self.limit.check(text.source, text.where)
                self._waiting.append(name)
                yield text

    def write(self, text: Text) -> bytes:
        splice, written = self._written[self._waiting.popleft()]
        written.append(splice.up_to(text))
        return b""

    def end(self) -> bytes:
        output = BytesIO()
        with zipfile.ZipFile(output, "w") as archive:
            for entry in self.archive.infolist():
                content = self._read(entry.filename)
                if entry.filename in self._written:
                    splice, written = self._written[entry.filename]
                    content = "".join([*written, splice.rest()]).encode()
                # Without its extra field: sizes beyond 4 GiB are not there, and OpenDocument wants none for mimetype.
                entry = copy(entry)
                entry.extra = b""
                archive.writestr(entry, content)
        return output.getvalue()

    def notes(self) -> Iterator[str]:
        names = self.archive.namelist()
        if any(name.endswith("vbaProject.bin") or name.startswith("Basic/") for name in names):
            yield f"{self.path} has macros, which stay as they are: texts in them are not translated"
        if any("_xmlsignatures/" in name or name.endswith("documentsignatures.xml") for name in names):
            yield f"{self.path} is signed, and the signature is not valid for its translation: remove it, or sign again"


def _flaw(entries: Sequence[zipfile.ZipInfo], size: int) -> str:
    """Return why an archive should not be opened; "" if it may be. size: of the archive, in bytes."""
    unpacked, seen = sum(entry.file_size for entry in entries), set[str]()
    if unpacked > min(_LARGEST, max(_SMALL, size * _LARGEST_RATIO)):
        return f"its {size} bytes become {unpacked} when unpacked"
    for entry in entries:
        name = entry.filename
        flaws = {
            "is outside of it": name.startswith(("/", "\\"))
            or ":" in name
            or ".." in name.replace("\\", "/").split("/"),
            "is there twice": name in seen,
            "has a password": entry.flag_bits & 1,
            "is a link": stat.S_ISLNK(entry.external_attr >> 16),
        }
        if found := [flaw for flaw, is_so in flaws.items() if is_so]:
            return f"its file {name!r:.80} {found[0]}"
        seen.add(name)
    return ""


def changed_tag(content: str, event: Event, values: Mapping[str, str]) -> Text:
    """Return an edit of a start tag, in which attributes have new values."""
    return Text([], event.start, event.end, with_attributes(content[event.start : event.end], values), reason=EDIT)
