"""String tables in JSON and YAML: which values are texts, and how they are written."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_translations import identity, translated

from tolka.documents.base import DOCUMENTS, Document
from tolka.errors import DataError

JSON = r"""{ "@@locale": "en", "en": {
  "title": "Open \"it\"", "@title": {"description": "not a text", "list": ["nor this"]},
  "menu": {"save": "Save file ", "items": ["First item", 2, null, true]},
  "colour": "#00ff00", "page": "https://example.org/a", "id": "errors.not_found", "when": "%Y-%m-%d",
  "day": "MM/DD/YYYY",
  "many": "{count, plural, one {# item} other {# items}}",
  "name": "Hello {{ name }}, %{other}, $t(menu.save)!", "lines": "First line.\n\n\tSecond line.", "$schema": "a text"
}}
"""
YAML = """\
# Comment
en:
  a: "Open it"   # comment
  anchored: &anchor anchored
  b: *anchor
  c: !ruby/sym kept_as_it_is
  one: Plain text here
  yes: yes
  quoted: 'it''s here'
  flow: [first item, "second item", 3]
  literal: |-
    First line.
      Second line.

    Third line.

  # comment
  folded: >
    A long text
    over two lines.
  last: A
    plain text
"""


def opened(kind: str, content: str, folder: Path) -> Document:
    path = folder / f"a.{kind}"
    path.write_text(content, encoding="utf-8", newline="")
    found = DOCUMENTS.get(kind)(path)
    assert isinstance(found, Document)
    return found


def sources(kind: str, content: str, folder: Path) -> list[tuple[str, str]]:
    return [(text.source, text.reason) for text in opened(kind, content, folder).texts() if text.reason != "edit"]


def of_yaml(content: str) -> Any:
    return yaml.safe_load(content.replace("!ruby/sym ", ""))


@pytest.mark.parametrize("content", [JSON, YAML])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_identity_translator_gives_the_same_bytes_back(content: str, line_end: str, tmp_path: Path) -> None:
    content = content.replace("\n", line_end)
    assert identity(opened("json" if content is JSON else "yaml", content, tmp_path)) == content.encode()


def test_the_texts_of_json(tmp_path: Path) -> None:
    assert sources("json", JSON, tmp_path) == [
        ('Open "it"', ""),
        ("Save file", ""),
        ("First item", ""),
        ("#00ff00", "code"),
        ("https://example.org/a", "without words"),
        ("errors.not_found", "code"),
        ("%Y-%m-%d", "code"),
        ("MM/DD/YYYY", "code"),
        ("{count, plural, one {# item} other {# items}}", "plural or select"),
        ("Hello {{ name }}, %{other}, $t(menu.save)!", ""),
        ("First line.", ""),
        ("Second line.", ""),
    ]


def test_translated_json_has_its_keys_and_other_values(tmp_path: Path) -> None:
    made = {
        'Open "it"': '„Es" öffnen',
        "Save file": "Sichern",
        "Second line.": "Zweite.",
        "Hello {{ name }}, %{other}, $t(menu.save)!": "%{other}, $t(menu.save), {{ name }}!",
    }
    expected = JSON.replace('"@@locale": "en", "en"', '"@@locale": "de", "de"').replace(r"Open \"it\"", r"„Es\" öffnen")
    expected = expected.replace("Save file ", "Sichern ").replace("Second line.", "Zweite.")
    expected = expected.replace("Hello {{ name }}, %{other}, $t(menu.save)!", "%{other}, $t(menu.save), {{ name }}!")
    assert translated(opened("json", JSON, tmp_path), made) == expected


def test_json_in_ascii_stays_in_ascii(tmp_path: Path) -> None:
    content = r'{"a": "caf\u00e9", "b": "a word"}'
    assert translated(opened("json", content, tmp_path), {"a word": "für"}) == content.replace("a word", r"f\u00fcr")


def test_translated_yaml_has_its_styles(tmp_path: Path) -> None:
    made = {
        "Open it": 'Öffne "es"',
        "Plain text here": "Text: ja",
        "it's here": "da ist's",
        "first item": "eins, zwei",
        "Second line.": "Zweite Zeile.",
        "A long text over two lines.": "Ein Text.",
        "A plain text": "No",
    }
    expected = YAML.replace("en:", "de:").replace('"Open it"', r'"Öffne \"es\""').replace("'it''s here'", "'da ist''s'")
    expected = expected.replace("Plain text here", "'Text: ja'").replace("first item", "'eins, zwei'")
    # Blocks become strings in quotation marks.
    literal = '"First line.\\n  Zweite Zeile.\\n\\nThird line."\n\n'
    expected = expected.replace(YAML[YAML.index("|-") : YAML.index("  # comment\n  folded")], literal)
    expected = expected.replace(">\n    A long text\n    over two lines.", '"Ein Text.\\n"')
    expected = expected.replace("A\n    plain text", "'No'")
    result = translated(opened("yaml", YAML, tmp_path), made)
    assert result == expected
    assert of_yaml(result)["de"]["literal"] == "First line.\n  Zweite Zeile.\n\nThird line."
    assert of_yaml(result)["de"]["last"] == "No"


def test_every_value_of_yaml_is_the_translation_whatever_it_needs(tmp_path: Path) -> None:
    for style in ("a b", "'a b'", '"a b"', "|\n  a b", ">-\n  a b", "[a b]", "{k: a b}"):
        for target in ("- no", "a: b", "a #b", "null", "1.5", "a, b] }", "it's", '"', "&x", "%s", "é\u2028", "\\n"):
            value = of_yaml(translated(opened("yaml", f"x: {style}\n", tmp_path), {"a b": target}))["x"]
            found = value[0] if isinstance(value, list) else value["k"] if isinstance(value, dict) else value
            assert str(found).rstrip("\n") == target


@pytest.mark.parametrize(
    ("kind", "content", "complaint"),
    [
        ("json", '{"a": 1,\n"b" 2}', r"a\.json:2: not JSON \(Expecting ':' delimiter\)"),
        ("json", "[" * 100_000, r"a\.json: brackets are nested too deeply"),
        ("yaml", "a: b\nc: [d\n", r"a\.yaml:3: not YAML"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(kind: str, content: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=complaint):
        list(opened(kind, content, tmp_path).texts())


def test_strings_of_json_are_those_of_pythons_reader(tmp_path: Path) -> None:
    result = translated(opened("json", JSON, tmp_path), str.upper)
    assert json.loads(result)["de"]["menu"] == {"save": "SAVE FILE ", "items": ["FIRST ITEM", 2, None, True]}


def test_other_languages_beside_the_source_stay(tmp_path: Path) -> None:
    content = '{"fr": {"a": "Bonjour."}, "en": {"a": "Good morning.", "no": "Never"}, "page": {"en": "English"}}'
    made = {"Good morning.": "Guten Tag.", "Never": "Nie", "English": "Englisch"}
    assert json.loads(translated(opened("json", content, tmp_path), made)) == {
        "fr": {"a": "Bonjour."},
        "de": {"a": "Guten Tag.", "no": "Nie"},
        "page": {"en": "Englisch"},
    }
    for kind, both in (
        ("json", '{"en": {"a": "Hi."}, "de": {"a": "Hallo."}}'),
        ("yaml", "en:\n  a: Hi\nde:\n  a: Hallo\n"),
    ):
        with pytest.raises(DataError, match="it has a key de already"):
            translated(opened(kind, both, tmp_path), {})


def test_a_blank_file_has_no_texts(tmp_path: Path) -> None:
    assert identity(opened("json", " \n", tmp_path)) == b" \n"


def test_tags_in_a_value_are_placed_and_not_read(tmp_path: Path) -> None:
    made = {"Click here now.": "Jetzt hier klicken."}
    document = opened("json", '{"a": "Click <a href=\\"{url}\\">here</a> now."}', tmp_path)
    assert json.loads(translated(document, made)) == {"a": 'Jetzt <a href="{url}">hier</a> klicken.'}
