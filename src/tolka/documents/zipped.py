"""Documents that are ZIP archives of XML, which office programs write."""

import re
import stat
import zipfile
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO

from tolka.documents.base import Document
from tolka.documents.markup import Event, TextBuilder, xml_events
from tolka.documents.spliced import Splice
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.scripts import is_right_to_left

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # a Compound File: what Office wrote until 2003, and around what it encrypts
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError)
_LARGEST = 2**30  # bytes, unpacked
_LARGEST_RATIO, _SMALL = 200, 2**26  # of all unpacked bytes to those of the file; not for so few
_DESCRIPTIONS = ("dc:title", "dc:subject", "dc:description")


class ZippedDocument(Document):
    """A document of several files of XML, its parts; whatever is no text in them stays, byte for byte."""

    @abstractmethod
    def parts(self) -> Iterable[str]:
        """Return the names of the parts with texts. DataError for an archive that is no such document."""

    @abstractmethod
    def find(self, name: str, content: str) -> Iterator[Text]:
        """Yield the texts of a part, and what changes in it with the language."""

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        raw, advice = self.read_bytes(), f"is it really {self.endings[0]}, and complete?"
        if raw.startswith(_OLE):
            raise DataError(
                f"{self.path} has a password, or is of the kind before 2007: save it without, as {self.endings[0]}"
            )
        try:
            archive = zipfile.ZipFile(BytesIO(raw))
        except _BROKEN as error:
            raise DataError(f"{self.path}: cannot be read ({error}); {advice}") from None
        if flaw := _flaw(archive.infolist(), len(raw)):
            raise DataError(f"{self.path}: {flaw}, which no office program writes; open it in one, and save it anew")
        return archive

    @property
    def names(self) -> list[str]:
        """The names of all files in the archive."""
        return self._archive.namelist()

    def content(self, name: str) -> str:
        """Return the characters of a part; DataError if it is missing or damaged."""
        if name not in self._archive.NameToInfo:
            raise DataError(f"{self.path} lacks its part {name}; is it really {self.endings[0]}, and complete?")
        try:
            return self._read(self._archive.getinfo(name)).decode()
        except UnicodeDecodeError:
            raise DataError(
                f"{self.path}: its part {name} is not UTF-8; open it in an office program, and save it anew"
            ) from None

    def _read(self, entry: zipfile.ZipInfo) -> bytes:
        try:
            with self._archive.open(entry) as stream:
                return stream.read(entry.file_size)  # never more than it says that it has
        except (*_BROKEN, RuntimeError) as error:
            raise DataError(
                f"{self.path}: its part {entry.filename} is damaged ({error}); get the file once more"
            ) from None

    @property
    def turned(self) -> str:
        """The way of the new writing, rtl or ltr, if it is another one than before; "" otherwise."""
        source, target = map(is_right_to_left, self.direction)
        return "" if source == target or not self.direction.is_known else "rtl" if target else "ltr"

    def label(self, name: str) -> str:
        """Return the name of a part for messages."""
        return f"{self.path}, {name}"

    def texts(self) -> Iterator[Text]:
        self._splices = dict[str, tuple[Splice, list[str]]]()
        self._waiting = deque[str]()  # the part of each text that is not written yet
        for name in self.parts():
            content = self.content(name)
            self._splices[name] = Splice(content), []
            for number, text in enumerate(self.find(name, content), 1):
                text.where = text.where or f"{self.label(name)}, text {number}"
                self.limit.check(text.source, text.where)
                self._waiting.append(name)
                yield text

    def write(self, text: Text) -> bytes:
        splice, written = self._splices[self._waiting.popleft()]
        written.append(splice.up_to(text))
        return b""

    def end(self) -> bytes:
        output = BytesIO()
        with zipfile.ZipFile(output, "w") as archive:
            archive.comment = self._archive.comment
            for entry in self._archive.infolist():
                content = self._read(entry)
                if entry.filename in self._splices:
                    splice, written = self._splices[entry.filename]
                    content = "".join([*written, splice.rest()]).encode()
                # Without its extra field: sizes beyond 4 GiB are not there, and OpenDocument wants none for mimetype.
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type, copy.external_attr = entry.compress_type, entry.external_attr
                copy.create_system, copy.comment = entry.create_system, entry.comment
                archive.writestr(copy, content)
        return output.getvalue()

    def notes(self) -> Iterator[str]:
        if any(name.endswith("vbaProject.bin") or name.startswith("Basic/") for name in self.names):
            yield f"{self.path} has macros, which stay as they are: texts in them are not translated"
        if any("_xmlsignatures/" in name or name.endswith("documentsignatures.xml") for name in self.names):
            yield f"{self.path} is signed, and the signature is not valid for its translation: remove it, or sign anew"


def _flaw(entries: Sequence[zipfile.ZipInfo], size: int) -> str:
    """Return why an archive should not be opened; "" if it may be. size: of the archive, in bytes."""
    unpacked, seen = sum(entry.file_size for entry in entries), set[str]()
    if unpacked > min(_LARGEST, max(_SMALL, size * _LARGEST_RATIO)):
        return f"its {size} bytes become {unpacked} when unpacked"
    for entry in entries:
        name = entry.filename
        if name.startswith(("/", "\\")) or ":" in name or ".." in name.replace("\\", "/").split("/"):
            return f"it has a file named {name!r:.80}, outside of it"
        if name in seen:
            return f"it has two files named {name!r:.80}"
        if stat.S_ISLNK(entry.external_attr >> 16):
            return f"its file {name!r:.80} is a link"
        if entry.flag_bits & 1:
            return f"its file {name!r:.80} has a password"
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return f"its file {name!r:.80} is packed by method {entry.compress_type}"
        seen.add(name)
    return ""


def changed_attribute(content: str, event: Event, name: str, value: str) -> Text:
    """Return an edit of a start tag, in which an attribute has a new value."""
    tag = content[event.start : event.end]
    found = re.search(rf"""\s{name}\s*=\s*(["'])(.*?)\1""", tag)
    if found:
        return Text([], event.start + found.start(2), event.start + found.end(2), value, reason=EDIT)
    place = event.start + len(re.split(r"[\s/>]", tag, maxsplit=1)[0])
    return Text([], place, place, f' {name}="{value}"', reason=EDIT)


class Paragraph:
    """An element that is read event by event: markup is taken whole, unless a subclass enters it.

    inside: texts of paragraphs in its markup, such as a text box's. This class drops them: it stands for what is left
    alone, and for `edits`.
    """

    def __init__(self, content: str, edits: Sequence[Text] = ()) -> None:
        self.content, self.edits, self.inside = content, edits, list[Text]()
        self._depth = 0
        self._whole = Event("start", "", {}, 0, 0)
        self.text = ""  # of the element that is taken whole

    def start(self, event: Event) -> None:
        """Take a start tag."""
        if not self._depth:
            if self.enter(event):
                return
            self._whole, self.text = event, ""
        self._depth += 1

    def end(self, event: Event) -> None:
        """Take an end tag."""
        if not self._depth:
            self.leave(event)
            return
        self._depth -= 1
        if not self._depth:
            self.add_whole(self._whole, event.end)

    def characters(self, event: Event) -> None:
        """Take characters, which are of the element that is taken whole, or of the paragraph itself."""
        if self._depth:
            self.text += event.text
        else:
            self.add_characters(event)

    def enter(self, event: Event) -> bool:
        """Take the start of an element inside; return False to have it taken whole."""
        return False

    def leave(self, event: Event) -> None:
        """Take the end of an element that was entered."""

    def add_whole(self, event: Event, end: int) -> None:
        """Take an element with all that is in it. event: its start. end: its place in the content."""

    def add_characters(self, event: Event) -> None:
        """Take characters of the paragraph itself."""

    def texts(self) -> Iterator[Text]:
        """Yield the texts; those inside of another one before it."""
        yield from self.edits


class Block(Paragraph):
    """A paragraph of characters and markup. spans: names of elements around characters; kept: of some that it reads."""

    def __init__(self, content: str, spans: Collection[str] = (), kept: Collection[str] = ()) -> None:
        super().__init__(content)
        self._spans, self._kept, self.builder = spans, kept, TextBuilder(content)

    def enter(self, event: Event) -> bool:
        if event.name in self._spans:
            self.builder.add(Code([], "open", event.name), event.start, event.end)
        return event.name in self._spans

    def leave(self, event: Event) -> None:
        self.builder.add(Code([], "close", event.name), event.start, event.end)

    def add_whole(self, event: Event, end: int) -> None:
        text = self.text.strip() if event.name in self._kept else ""
        self.builder.add(Code([], "kept" if text else "lone", text=text), event.start, end, self.inside)
        self.inside = []

    def add_characters(self, event: Event) -> None:
        self.builder.add(event.text, event.start, event.end)

    def texts(self) -> Iterator[Text]:
        return self.builder.finish()


def paragraphs(events: Iterable[Event], opened: Callable[[Event], Paragraph | None]) -> Iterator[Text]:
    """Yield the texts of paragraphs, which may have others inside.

    opened: returns what reads the element that a tag starts; None if it has no text of its own.
    """
    stack, depth = list[tuple[int, Paragraph]](), 0
    for event in events:
        if event.kind == "start":
            depth += 1
            if stack:
                stack[-1][1].start(event)
            if paragraph := opened(event):
                stack.append((depth, paragraph))
        elif event.kind == "text" and stack:
            stack[-1][1].characters(event)
        elif event.kind == "end":
            if stack and stack[-1][0] == depth:
                texts = stack.pop()[1].texts()
                if stack:
                    stack[-1][1].inside += texts
                else:
                    yield from texts
            if stack:
                stack[-1][1].end(event)
            depth -= 1


def descriptions(content: str, label: str) -> Iterator[Text]:
    """Yield the title, subject and description (Dublin Core) of a document's properties."""
    events = xml_events(content, label)
    return paragraphs(events, lambda event: Block(content) if event.name in _DESCRIPTIONS else None)
