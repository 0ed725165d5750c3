"""Files that are not plain text: documents by their file extension, binary files by their first bytes."""

from pathlib import Path

# File extension -> the kind of file, and what it contains besides text.
_DOCUMENTS = {
    ".srt": ("subtitles", "numbers and time codes"),
    ".vtt": ("subtitles", "time codes"),
    ".ass": ("subtitles", "styles and time codes"),
    ".ssa": ("subtitles", "styles and time codes"),
    ".po": ("a gettext catalogue", "keywords and comments"),
    ".pot": ("a gettext catalogue", "keywords and comments"),
    ".html": ("HTML", "tags"),
    ".htm": ("HTML", "tags"),
    ".xhtml": ("HTML", "tags"),
    ".xml": ("XML", "tags"),
    ".tmx": ("a translation memory", "tags and both languages"),
    ".sgm": ("a test set of WMT", "tags"),
    ".sgml": ("SGML", "tags"),
    ".xliff": ("XLIFF", "tags and both languages"),
    ".xlf": ("XLIFF", "tags and both languages"),
    ".md": ("Markdown", "markup"),
    ".markdown": ("Markdown", "markup"),
    ".rst": ("reStructuredText", "markup"),
    ".tex": ("LaTeX", "commands"),
    ".rtf": ("RTF", "commands"),
    ".json": ("JSON", "keys and brackets"),
    ".jsonl": ("JSON", "keys and brackets"),
    ".ipynb": ("a notebook", "keys and brackets"),
    ".yaml": ("YAML", "keys"),
    ".yml": ("YAML", "keys"),
    ".csv": ("a table", "all columns"),
    ".tsv": ("a table", "all columns"),
    ".docx": ("a Word document", "markup"),
    ".odt": ("an OpenDocument text", "markup"),
    ".pdf": ("a PDF", "markup"),
}
_SAVE_AS_TEXT = "save it as plain text (UTF-8) first"
# First bytes -> the kind of file, and what to do about it.
_BINARY = {
    b"PK\x03\x04": ("a ZIP archive, as Word, OpenDocument and EPUB files are", _SAVE_AS_TEXT),
    b"%PDF-": ("a PDF", _SAVE_AS_TEXT),
    b"\xd0\xcf\x11\xe0": ("a Word, Excel or PowerPoint file of the old kind", _SAVE_AS_TEXT),
    b"PAR1": ("Parquet", "name its column (input.column, corpus.columns), and let the file's name end in .parquet"),
    b"\x89PNG": ("a picture", "there is no text in it to read"),
    b"\xff\xd8\xff": ("a picture", "there is no text in it to read"),
    b"\x1f\x8b": ("compressed by gzip", "unpack it first, or let its name end in .gz"),
    b"BZh": ("compressed by bzip2", "unpack it first, or let its name end in .bz2"),
    b"\xfd7zXZ": ("compressed by xz", "unpack it first, or let its name end in .xz"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it first, or let its name end in .zst"),
}


def document_kind(path: Path) -> tuple[str, str]:
    """Return a file's kind by its name, and what it contains besides text; two empty strings for plain text."""
    return _DOCUMENTS.get(path.suffix.lower(), ("", ""))


def binary_kind(head: bytes) -> tuple[str, str]:
    """Return a file's kind by its first bytes, and what to do about it; two empty strings if unknown.

    A text in UTF-8 may begin with the same bytes: the caller must check.
    """
    return next((kind for mark, kind in _BINARY.items() if head.startswith(mark)), ("", ""))
