"""Documents of office programs: what their texts are, and what a translated one has."""

import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest

from tolka.documents.base import Document, Layout
from tolka.documents.office_xml import Presentation, WordDocument
from tolka.documents.open_document import OpenDocument
from tolka.documents.placing import place
from tolka.documents.spreadsheet import Spreadsheet
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.text.direction import UNKNOWN, Direction

_OFFICE = "application/vnd.openxmlformats-officedocument"
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OPEN = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "style", "fo")
)


def _zip(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(
                ZipInfo(name, (2020, 2, 3, 4, 5, 6)), content, ZIP_STORED if name == "mimetype" else ZIP_DEFLATED
            )
    return path


def _office(path: Path, parts: Mapping[str, tuple[str, str]], more: Mapping[str, bytes] = {}) -> Path:
    """Write an archive of parts, each with its type."""
    types = "".join(f'<Override PartName="/{name}" ContentType="{kind}+xml"/>' for name, (kind, _) in parts.items())
    contents = {name: content for name, (_, content) in parts.items()}
    return _zip(path, {"[Content_Types].xml": f"<Types>{types}</Types>", **contents, **more})


def _docx(folder: Path, body: str, **more: bytes) -> WordDocument:
    content = f"<?xml version='1.0'?>\r\n<w:document {_WORD}><w:body>{body}</w:body></w:document>"
    main = f"{_OFFICE}.wordprocessingml.document.main"
    return WordDocument(_office(folder / "a.docx", {"word/document.xml": (main, content)}, more))


def _p(*runs: str) -> str:
    return f"<w:p><w:pPr><w:jc/></w:pPr>{''.join(runs)}</w:p>"


def _r(text: str, formatting: str = "") -> str:
    return f"<w:r>{formatting and f'<w:rPr>{formatting}</w:rPr>'}<w:t>{text}</w:t></w:r>"


def _translated(document: Document, translate: Callable[[Text], str], direction: Direction = UNKNOWN) -> dict[str, str]:
    """Return the parts of a document whose every text is translated."""
    document.direction = direction
    for text in document.texts():
        if not text.reason:
            place(text, translate(text), None)
        document.write(text)
    with ZipFile(BytesIO(document.end())) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def _upper(text: Text) -> str:
    return text.source.upper()


def _body(document: Document, translate: Callable[[Text], str] = _upper, direction: Direction = UNKNOWN) -> str:
    content = _translated(document, translate, direction)["word/document.xml"]
    return content[content.index("<w:body>") + 8 : content.index("</w:body>")].replace(' xml:space="preserve"', "")


def _sources(document: Document) -> list[str]:
    return [text.source for text in document.texts() if text.reason != EDIT]


def test_the_same_texts_give_the_same_archive(tmp_path: Path) -> None:
    document = _docx(
        tmp_path,
        _p(_r("a &#228; "), "<w:r/>") + " <!-- x --> " + _p(_r("&lt;b>", "<w:b/>")),
        **{"media/x": b"\x00\xff"},
    )
    for text in document.texts():
        document.write(text)
    with ZipFile(document.path) as before, ZipFile(BytesIO(document.end())) as after:
        assert before.namelist() == after.namelist()
        for name in before.namelist():
            assert before.read(name) == after.read(name)
            assert before.getinfo(name).date_time == after.getinfo(name).date_time
            assert before.getinfo(name).compress_type == after.getinfo(name).compress_type


def test_runs_of_one_formatting_are_one_text(tmp_path: Path) -> None:
    # Word parts a word where it was typed anew, and formatting may begin in the middle of one.
    body = _p(
        _r("Some wo"), '<w:proofErr w:type="spellStart"/>', _r("rds ", "<w:noProof/>"), _r("bo", "<w:b/>"), _r("ld")
    )
    document = _docx(tmp_path, body)
    assert _sources(document) == ["Some words bold"]
    bold = "<w:r><w:rPr><w:b/></w:rPr><w:t>BOLD</w:t></w:r>"
    assert _body(document) == _p(_r("SOME WORDS "), bold)


def test_most_of_a_text_has_the_formatting_of_its_translation(tmp_path: Path) -> None:
    document = _docx(tmp_path, _p(_r("All of it ", "<w:i/>"), _r("here")))
    assert _body(document) == _p(_r("ALL OF IT ", "<w:i/>"), _r("HERE"))


def test_links_bookmarks_and_notes_are_kept_around_their_words(tmp_path: Path) -> None:
    link, note = (
        '<w:hyperlink w:anchor="x">{}</w:hyperlink>',
        '<w:r><w:rPr><w:rStyle/></w:rPr><w:footnoteReference w:id="2"/></w:r>',
    )
    body = _p(_r("See "), link.format(_r("this page", "<w:u/>")), note, _r(" there."))
    assert _body(_docx(tmp_path, body)) == _p(_r("SEE "), link.format(_r("THIS PAGE", "<w:u/>")), note, _r(" THERE."))


def test_a_content_control_keeps_its_order(tmp_path: Path) -> None:
    control = "<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    body = _p(_r("By "), control.format(_r("somebody")), _r(" else"))
    assert _body(_docx(tmp_path, body)) == _p(_r("BY "), control.format(_r("SOMEBODY")), _r(" ELSE"))


def test_fields(tmp_path: Path) -> None:
    def field(instruction: str, result: str) -> str:
        begin, separate, end = (
            f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
        )
        return f"{begin}<w:r><w:instrText>{instruction}</w:instrText></w:r>{separate}{result}{end}"

    document = _docx(
        tmp_path, _p(_r("On page "), field(" PAGE ", _r("seven")), _r(" is "), field("HYPERLINK x", _r("a link")))
    )
    assert _sources(document) == ["On page seven is a link"]
    written = _body(document, lambda text: "AUF SEITE seven IST EIN LINK")
    assert re.sub("<[^>]+>", "|", written).replace("||", "|").count("|seven|") == 1
    assert re.findall("<w:instrText>(.*?)</w:instrText>", written) == [" PAGE ", "HYPERLINK x"]
    assert re.findall('CharType="(.)', written) == list("bsebse")


def test_deleted_text_stays_and_inserted_text_is_translated(tmp_path: Path) -> None:
    deleted = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    body = _p(_r("the "), deleted, f"<w:ins>{_r('new')}</w:ins>", _r(" one"))
    assert _body(_docx(tmp_path, body)) == _p(_r("THE "), deleted, f"<w:ins>{_r('NEW')}</w:ins>", _r(" ONE"))


def test_tabs_and_new_lines_end_a_text(tmp_path: Path) -> None:
    run = "<w:r><w:t>Name</w:t><w:tab/><w:t>Value</w:t><w:br/><w:t>Next line</w:t><w:br/><w:t>goes on</w:t></w:r>"
    document = _docx(tmp_path, _p(run))
    assert _sources(document) == ["Name", "Value", "Next line goes on"]
    written = _body(document)
    assert re.sub("<w:(tab|br)/>|<[^>]+>", r"\1", written) == "NAMEtabVALUEbrNEXT LINE brGOES ON"
    assert "<w:r></w:r>" not in written
    assert written.count("<w:r>") == written.count("</w:r>")


def test_a_text_box_is_a_text_inside_of_another_one(tmp_path: Path) -> None:
    box = "<w:r><w:drawing><w:txbxContent>{}</w:txbxContent></w:drawing></w:r>"
    document = _docx(tmp_path, _p(_r("Before "), box.format(_p(_r("in it"))), _r(" behind")))
    assert _sources(document) == ["in it", "Before behind"]
    assert _body(document) == _p(_r("BEFORE "), box.format(_p(_r("IN IT"))), _r(" BEHIND"))
    # Also where the text around it stays as it is.
    names = {"in it": "innen", "Before behind": "Before behind"}
    assert _body(document, lambda text: names[text.source]) == _p(
        _r("Before "), box.format(_p(_r("innen"))), _r(" behind")
    )


def test_other_prefixes_are_read(tmp_path: Path) -> None:
    content = f"<x:document {_WORD.replace('xmlns:w', 'xmlns:x')}><x:p><x:r><x:t>one</x:t></x:r></x:p></x:document>"
    path = _office(tmp_path / "a.docx", {"word/other.xml": ("word.main", content)})
    written = _translated(WordDocument(path), _upper)["word/other.xml"]
    assert '<x:p><x:r><x:t xml:space="preserve">ONE</x:t></x:r></x:p>' in written


def test_writing_from_right_to_left(tmp_path: Path) -> None:
    document = _docx(tmp_path, _p(_r("Some ", '<w:b/><w:lang w:val="en-GB"/>'), _r("words in it")))
    written = _body(document, direction=Direction("en", "ar"))
    assert (
        written
        == "<w:p><w:pPr><w:bidi/><w:jc/></w:pPr>"
        + _r("SOME", "<w:b/><w:bCs/><w:rtl/>")
        + _r(" WORDS IN IT", "<w:rtl/>")
        + "</w:p>"
    )
    back = _docx(tmp_path, "<w:p><w:pPr><w:bidi/><w:jc/></w:pPr>" + _r("words", "<w:rtl/>") + "</w:p>")
    assert _body(back, direction=Direction("ar", "en")) == _p(_r("WORDS"))


def test_a_centered_paragraph_of_a_slide_stays_centered(tmp_path: Path) -> None:
    slide = f'<p:sld xmlns:p="p" {_DRAWING}><a:p><a:pPr algn="ctr"/><a:r><a:t>plan</a:t></a:r></a:p></p:sld>'
    parts = {"p.xml": ("presentation.main", "<p/>"), "s.xml": ("presentationml.slide", slide)}
    document = Presentation(_office(tmp_path / "a.pptx", parts))
    assert '<a:pPr algn="ctr" rtl="1"/>' in _translated(document, _upper, Direction("en", "he"))["s.xml"]


def test_styles_name_the_new_language(tmp_path: Path) -> None:
    styles = f'<w:styles {_WORD}><w:lang w:val="en-US" w:bidi="ar-SA"/><w:lang w:val="fr-FR"/></w:styles>'
    parts = {"d.xml": ("word.main", f"<w:x {_WORD}/>"), "s.xml": ("wordprocessingml.styles", styles)}
    written = _translated(WordDocument(_office(tmp_path / "a.docx", parts)), _upper, Direction("en", "de"))["s.xml"]
    assert written == styles.replace('w:val="en-US" w:bidi="ar-SA"', 'w:bidi="ar-SA" w:val="de-DE"')


def test_slides(tmp_path: Path) -> None:
    slide = (
        f'<p:sld xmlns:p="p" {_DRAWING}><a:p><a:r><a:rPr lang="en-US" dirty="0"/><a:t>Our </a:t></a:r>'
        '<a:r><a:rPr lang="en-US" err="1"/><a:t>plan</a:t></a:r><a:br/><a:r><a:t>In May </a:t></a:r>'
        '<a:fld type="slidenum"><a:t>3</a:t></a:fld></a:p></p:sld>'
    )
    parts = {"p.xml": ("presentation.main", "<p/>"), "ppt/slides/s.xml": ("presentationml.slide", slide)}
    document = Presentation(_office(tmp_path / "a.pptx", parts))
    assert _sources(document) == ["Our plan", "In May 3"]
    written = _translated(document, lambda text: text.source.upper(), Direction("en", "de"))["ppt/slides/s.xml"]
    assert "<a:p><a:r><a:t>OUR PLAN</a:t></a:r><a:br/><a:r><a:t>IN MAY </a:t></a:r><a:fld" in written
    turned = _translated(document, _upper, Direction("en", "he"))["ppt/slides/s.xml"]
    assert '<a:p><a:pPr algn="r" rtl="1"/><a:r>' in turned


def _xlsx(folder: Path, column: str = "") -> Spreadsheet:
    strings = ["Key", "Text", "one", "Two\nlines &amp; all"]
    cells = [["A1", 0], ["B1", 1], ["A2", 2], ["B2", 3]]
    rows = "".join(f'<c r="{place}" t="s"><v>{number}</v></c>' for place, number in cells)
    formula = '<c r="B3" t="str"><f>B2</f><v>text</v></c>'
    inline = '<c r="C2" t="inlineStr"><is><t>in</t></is></c>'
    sheet = f"<worksheet {_SHEET}>{rows}{inline}{formula}</worksheet>"
    shared = f"<sst {_SHEET}>" + "".join(f"<si><t>{each}</t></si>" for each in strings) + "</sst>"
    parts = {
        "xl/w.xml": ("sheet.main", "<w/>"),
        "xl/s.xml": ("x.sharedStrings", shared),
        "xl/1.xml": ("x.worksheet", sheet),
        "xl/t.xml": ("x.table", '<table><tableColumn name="Key"/></table>'),
    }
    return Spreadsheet(_office(folder / "a.xlsx", parts), Layout(column=column))


def test_cells(tmp_path: Path) -> None:
    document = _xlsx(tmp_path)
    assert [(text.source, text.reason) for text in document.texts()] == [
        ("Key", "name of a table's column"),
        ("Text", ""),
        ("one", ""),
        ("Two lines & all", ""),
        ("in", ""),
    ]
    written = _translated(document, _upper)
    assert "<si><t>TWO \nLINES &amp; ALL</t></si>" in written["xl/s.xml"]
    assert "<is><t>IN</t></is>" in written["xl/1.xml"]


def test_lines_of_a_formatted_cell_stay(tmp_path: Path) -> None:
    string = "<si><r><rPr><b/></rPr><t>Note</t></r><r><t>:\nsee below</t></r></si>"
    parts = {"xl/w.xml": ("sheet.main", "<w/>"), "xl/s.xml": ("x.sharedStrings", f"<sst {_SHEET}>{string}</sst>")}
    document = Spreadsheet(_office(tmp_path / "a.xlsx", parts))
    assert _sources(document) == ["Note: see below"]
    written = _translated(document, _upper)["xl/s.xml"]
    assert re.sub("<(?!b/)[^>]+>", "", written) == "<b/>NOTE: \nSEE BELOW"


def test_the_cells_of_one_column(tmp_path: Path) -> None:
    assert _sources(_xlsx(tmp_path, "Text")) == ["Two lines & all"]
    assert _sources(_xlsx(tmp_path, "B")) == _sources(_xlsx(tmp_path, "2")) == ["Text", "Two lines & all"]
    assert _sources(_xlsx(tmp_path, "C")) == ["in"]
    written = _translated(_xlsx(tmp_path, "Text"), _upper)
    assert '<c r="B2" t="inlineStr"><is><t>TWO \nLINES &amp; ALL</t></is></c>' in written["xl/1.xml"]
    assert '<c r="A2" t="s"><v>2</v></c>' in written["xl/1.xml"]
    with pytest.raises(DataError, match="no sheet has a column 'texts'; use 'Key', 'Text', or a letter"):
        _sources(_xlsx(tmp_path, "texts"))


def _odf(path: Path, body: str, kind: str = "text", styles: str = "<x/>") -> Path:
    content = f"<office:document-content {_OPEN}>{body}</office:document-content>"
    parts = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "META-INF/manifest.xml": "<m/>"}
    return _zip(
        path, {**parts, "content.xml": content, "styles.xml": f"<office:styles {_OPEN}>{styles}</office:styles>"}
    )


def test_open_document(tmp_path: Path) -> None:
    note = "<text:note><text:note-citation>1</text:note-citation><text:p>{}</text:p></text:note>"
    comment = "<office:annotation><text:p>a remark</text:p></office:annotation>"
    body = (
        f'<text:p>Some <text:span text:style-name="B">bo</text:span>ld{note} wor{comment}ds'
        "<text:tab/>Page <text:page-number>1</text:page-number><text:s/>of 2</text:p>"
    )
    document = OpenDocument(_odf(tmp_path / "a.odt", body.replace("{}", "a note")))
    assert _sources(document) == ["a note", "Some bold words", "Page 1 of 2"]
    written = _translated(document, lambda text: text.source.upper())["content.xml"]
    for part in ("SOME <text:span", note.format("A NOTE"), comment):
        assert part in written
    assert written.index("A NOTE") < written.index(
        "<text:tab/>PAGE <text:page-number>1</text:page-number> OF 2</text:p>"
    )


def test_cells_of_open_document(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
    body = (
        cell.format("string", "", "text")
        + cell.format("float", "", "number")
        + cell.format("string", ' table:formula="x"', "sum")
    )
    assert _sources(OpenDocument(_odf(tmp_path / "a.ods", body, "spreadsheet"))) == ["text"]


def test_styles_of_open_document_change_with_the_language(tmp_path: Path) -> None:
    styles = (
        '<style:default-style style:family="paragraph"><style:paragraph-properties fo:x="1"/>'
        '<style:text-properties fo:language="en" fo:country="US"/></style:default-style>'
    )
    document = OpenDocument(_odf(tmp_path / "a.odt", "", styles=styles))
    written = _translated(document, _upper, Direction("en", "he"))["styles.xml"]
    assert '<style:paragraph-properties fo:x="1" style:writing-mode="rl-tb" fo:text-align="end"/>' in written
    assert 'fo:language="he" fo:country="IL"' in written


def _refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        list(WordDocument(path).texts())
    return str(caught.value).removeprefix(str(path))


def test_archives_that_are_not_opened(tmp_path: Path) -> None:
    path, name = tmp_path / "a.docx", "[Content_Types].xml"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert _refused(path).startswith(" has a password, or is of the kind before 2007")
    path.write_bytes(b"PK\3\4 no more")
    assert "cannot be read (File is not a zip file); is it really .docx, and complete?" in _refused(path)
    assert _refused(_zip(path, {"a": "x"})) == f" lacks its part {name}; is it really .docx, and complete?"
    assert " is a ZIP archive, but no .docx" in _refused(_zip(path, {name: "<Types/>"}))
    for name in ("../a", "/a", "a/../../b", "C:a"):
        assert f"its file '{name}' is outside of it" in _refused(_zip(path, {name: ""}))
    assert "become 100000000 when unpacked" in _refused(_zip(path, {"a": bytes(100_000_000)}))
    with ZipFile(path, "w") as archive:
        link = ZipInfo("a")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert "its file 'a' is a link" in _refused(path)
    path.write_bytes(_zip(path, {"a": "", "b": ""}).read_bytes().replace(b"b", b"a"))
    assert "its file 'a' is there twice" in _refused(path)
    raw = bytearray(_zip(path, {"a": ""}).read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)
    assert "its file 'a' has a password" in _refused(path)


def test_damage_is_named(tmp_path: Path) -> None:
    assert ", word/document.xml:3: this is not XML" in _refused(_docx(tmp_path, "<w:p>\n</w:r>").path)
    entity = f"<!DOCTYPE a [<!ENTITY e 'x'>]><w:d {_WORD}/>"
    path = _office(tmp_path / "a.docx", {"d.xml": ("word.main", entity)})
    assert "it declares an entity (e)" in _refused(path)
    document = _docx(tmp_path, _p(_r("text")))
    raw = bytearray(document.path.read_bytes())
    raw[raw.index(b"word/document.xml") + 60] ^= 0xFF
    document.path.write_bytes(raw)
    assert "its part word/document.xml is damaged" in _refused(document.path)


def test_macros_and_signatures_are_noted(tmp_path: Path) -> None:
    document = _docx(tmp_path, _p(_r("x")), **{"word/vbaProject.bin": b"1", "_xmlsignatures/s.xml": b"<s/>"})
    assert [note.split(", ")[0].split(" ", 1)[1] for note in document.notes()] == ["has macros", "is signed"]
    assert not list(_docx(tmp_path, "").notes())


def test_what_has_a_style_for_code_stays(tmp_path: Path) -> None:
    style = '<w:rStyle w:val="SourceText"/>'
    block = '<w:p><w:pPr><w:pStyle w:val="PreformattedText"/></w:pPr><w:r><w:t>git init</w:t></w:r></w:p>'
    document = _docx(tmp_path, _p(_r("Type "), _r("ls &lt;a", style), _r(" now")) + block)
    assert [(text.source, text.reason) for text in document.texts()] == [("Type ls <a now", ""), ("git init", "code")]
    written = _body(document, lambda text: "JETZT ls <a TIPPEN")
    assert re.findall(r"<w:t[^>]*>([^<]*)", written) == ["JETZT ", "ls &lt;a", " TIPPEN", "git init"]
    assert written.count("SourceText") == 1

    automatic = '<style:style style:name="P7" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>'
    body = (
        '<text:p>Type <text:span text:style-name="Source_20_Text">ls -l</text:span> now</text:p>'
        '<text:p text:style-name="P7">git init</text:p>'
    )
    texts = list(OpenDocument(_odf(tmp_path / "a.odt", automatic + body)).texts())
    assert [(text.source, text.reason) for text in texts] == [("Type ls -l now", ""), ("git init", "code")]
    assert [(node.kind, node.code.text) for node in texts[0].nodes] == [("kept", "ls -l")]
