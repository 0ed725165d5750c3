"""Files that are not plain text: documents by their file extension, binary files by their first bytes."""

from pathlib import Path

# Kind of file, what it contains besides text, and its file extensions.
_DOCUMENTS = (
    ("subtitles", "numbers and time codes", ".srt"),
    ("subtitles", "time codes", ".vtt"),
    ("subtitles", "styles and time codes", ".ass .ssa"),
    ("a gettext catalogue", "keywords and comments", ".po .pot"),
    ("HTML", "tags", ".html .htm .xhtml"),
    ("XML", "tags", ".xml"),
    ("a translation memory", "tags and both languages", ".tmx"),
    ("a test set of WMT", "tags", ".sgm"),
    ("SGML", "tags", ".sgml"),
    ("XLIFF", "tags and both languages", ".xliff .xlf"),
    ("Markdown", "markup", ".md .markdown"),
    ("reStructuredText", "markup", ".rst"),
    ("LaTeX", "commands", ".tex"),
    ("RTF", "commands", ".rtf"),
    ("JSON", "keys and brackets", ".json .jsonl"),
    ("a notebook", "keys and brackets", ".ipynb"),
    ("YAML", "keys", ".yaml .yml"),
    ("a table", "all columns", ".csv .tsv"),
    # What is refused, as its bytes are no text.
    ("a Word document", "", ".docx"),
    ("a presentation", "", ".pptx .odp"),
    ("a workbook", "", ".xlsx .xlsb .xls .ods"),
    ("an OpenDocument text", "", ".odt"),
    ("an e-book", "", ".epub"),
)
_SAVE_AS_TEXT = "save it as plain text (UTF-8) first"
# First bytes -> the kind of file, and what to do about it.
_BINARY = {
    b"PK\x03\x04": ("a ZIP archive, as Word, OpenDocument and EPUB files are", _SAVE_AS_TEXT),
    b"%PDF-": ("a PDF", _SAVE_AS_TEXT),
    b"\xd0\xcf\x11\xe0": ("a Word, Excel or PowerPoint file of the old kind", _SAVE_AS_TEXT),
    b"PAR1": ("Parquet", "name its column (input.column, corpus.columns), and let the file's name end in .parquet"),
    **dict.fromkeys(
        (b"\x89PNG", b"GIF8", b"RIFF", b"II*\0", b"MM\0*"), ("a picture or a film", "it has no text to read")
    ),
    b"\xff\xd8\xff": ("a picture", "it has no text to read"),
    b"\x1f\x8b": ("compressed by gzip", "unpack it first, or let its name end in .gz"),
    b"BZh": ("compressed by bzip2", "unpack it first, or let its name end in .bz2"),
    b"\xfd7zXZ": ("compressed by xz", "unpack it first, or let its name end in .xz"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it first, or let its name end in .zst"),
}


def document_kind(path: Path) -> tuple[str, str]:
    """Return a file's kind by its name, and what it contains besides text; two empty strings for plain text.

    It contains "" where its bytes are no text, which reading refuses.
    """
    ending = path.suffix.lower()
    return next(((kind, content) for kind, content, endings in _DOCUMENTS if ending in endings.split()), ("", ""))


def binary_kind(head: bytes, name: str = "") -> tuple[str, str]:
    """Return a file's kind by its first bytes, which a text may have as well, and what to do; two "" if unknown."""
    kind, advice = next((kind for mark, kind in _BINARY.items() if head.startswith(mark)), ("", ""))
    by_name, content = document_kind(Path(name))
    return (by_name, advice) if kind and by_name and not content else (kind, advice)
