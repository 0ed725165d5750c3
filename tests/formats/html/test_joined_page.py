"""The HTML file of a translator: its policy, its escaping, and what is read back from it."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tolka.formats.html import page
from tolka.formats.html.page import MODULES, join_modules, join_page, join_server_page

PAGE = Path(page.__file__).parents[2] / "page"
HOSTILE = "</script><!--<script>$title &lt;\u2028\x00'\""


class Elements(HTMLParser):
    """The elements of a page, as (name, attributes, text up to the next tag)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.is_open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.is_open = True

    def handle_data(self, data: str) -> None:
        if self.is_open:
            name, attributes, text = self.found[-1]
            self.found[-1] = (name, attributes, text + data)

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def only(self, name: str, **wanted: str) -> tuple[dict[str, str | None], str]:
        rest = [each[1:] for each in self.found if each[0] == name and wanted.items() <= each[1].items()]
        assert len(rest) == 1, (name, wanted, rest)
        return rest[0]


@pytest.fixture(autouse=True)
def fake_runtime(monkeypatch: pytest.MonkeyPatch) -> str:
    text = Path(__file__).with_name("fake_worker.js").read_text(encoding="utf-8")
    monkeypatch.setattr(page, "join_modules", lambda names: text if names == MODULES else join_modules(names))
    return text


def sha256_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def joined(title: str = "English to German", **model: Any) -> Elements:
    return Elements(join_page(title, [{"title": "small", **model}], [b"0123456789"]))


def test_the_policy_allows_the_page_s_own_script_and_style_and_no_request() -> None:
    elements = joined()
    policy = elements.only("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    script, style = elements.only("script", type="module")[1], elements.only("style")[1]
    assert "postMessage" in script
    assert "--accent" in style
    directives = dict(each.strip().split(" ", 1) for each in str(policy).split(";"))
    assert directives == {
        "default-src": "'none'",
        "script-src": f"{sha256_source(script)} 'wasm-unsafe-eval'",
        "style-src": sha256_source(style),
        "worker-src": "blob:",
        "child-src": "blob:",
        "form-action": "'none'",
        "base-uri": "'none'",
    }


def test_a_server_s_page_may_ask_its_own_server_alone_and_has_no_weights() -> None:
    elements = Elements(server_page())
    policy = elements.only("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert dict(each.strip().split(" ", 1) for each in str(policy).split(";")) == {
        "default-src": "'none'",
        "connect-src": "'self'",
        "script-src": sha256_source(elements.only("script", type="module")[1]),
        "style-src": sha256_source(elements.only("style")[1]),
        "form-action": "'none'",
        "base-uri": "'none'",
    }
    assert [named.get("type") for name, named, _ in elements.found if name == "script"] == [
        "module",
        "application/json",
    ]
    assert json.loads(elements.only("script", id="about")[1])["abilities"]["endings"] == [HOSTILE]
    attributes = {name for _, named, _ in elements.found for name in named}
    assert {name for name in attributes if name in ("src", "href", "style", "srcset") or name.startswith("on")} == set()


def server_page(*models: dict[str, Any]) -> str:
    abilities = {"token": True, "suggestions": True, "endings": [HOSTILE], "characters": 9, "file_bytes": 9}
    return join_server_page([*models] or [{**offered(HOSTILE, b"", "en-de"), "attention": True}], abilities)


def test_a_server_is_asked_what_the_page_asks_its_engine(tmp_path: Path) -> None:
    """And again where it is busy or gone; with a token; never twice for a sentence: server_engine.mjs has the cases."""
    if not (node := shutil.which("node")):
        pytest.skip("Node is not installed: nothing runs the page's script")
    place = tmp_path / "page.html"
    place.write_text(server_page(), encoding="utf-8")
    command = [node, str(Path(__file__).with_name("server_engine.mjs")), str(PAGE), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "as expected\n", done.stderr


def test_nothing_in_the_page_asks_for_another_file_or_holds_code_beside_its_script() -> None:
    elements = joined()
    attributes = {name for _, named, _ in elements.found for name in named}
    assert {name for name in attributes if name in ("src", "href", "style", "srcset") or name.startswith("on")} == set()
    kinds = [named.get("type") for name, named, _ in elements.found if name == "script"]
    assert kinds == ["module", "application/json", "text/plain", "text/plain"]
    names = [name for name, _, _ in elements.found]
    assert names.index("meta") < names.index("style")  # a policy is for what follows it


def test_models_and_weights_are_read_back(fake_runtime: str) -> None:
    weights = [bytes(range(256)), b"\xff" * 31]
    models: list[dict[str, Any]] = [
        {"card": HOSTILE, "tokenizer": {"pieces": ["▁집", HOSTILE, "<"]}},
        {"directions": [{"source": "ar"}]},
    ]
    elements = Elements(join_page(HOSTILE, models, weights))
    about = json.loads(elements.only("script", id="about")[1])
    assert about["models"] == [{**models[0], "bytes": 256}, {**models[1], "bytes": 31}]
    assert "<" not in elements.only("script", id="about")[1]
    for index, each in enumerate(weights):
        assert base64.b64decode(elements.only("script", id=f"weights-{index}")[1], validate=True) == each
    assert elements.only("script", id="runtime")[1] == fake_runtime


def opened(text: str, place: Path, **browser: Any) -> dict[str, Any]:
    """What open_page.mjs says of a page."""
    if not (node := shutil.which("node")):
        pytest.skip("Node is not installed: nothing runs the page's script")
    place.write_text(text, encoding="utf-8")
    command = [node, str(Path(__file__).with_name("open_page.mjs")), str(place), json.dumps(browser)]
    result: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    return result


def offered(title: str, content: bytes, *directions: str) -> dict[str, Any]:
    """What join_page is given of a model that can be opened."""
    pairs = [dict(zip(("source", "target"), each.split("-"), strict=True)) for each in directions]
    digest = hashlib.sha256(content).hexdigest()
    return {"title": title, "directions": pairs, "verdict": "", "card": "", "checksum": digest}


def test_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    models = [offered("mine", b"", *each) for each in (("en-de",), ("de-en", "en-de"), ("en-de",))]
    other = offered("other", b"", "en-de")
    assert opened(join_page("", [*models, other], [b""] * 4), tmp_path / "page.html")["options"] == [
        "English → German · mine",
        "German → English · mine",
        "English → German · mine (2)",
        "English → German · mine (3)",
        "English → German · other",
    ]
    assert opened(join_page("", models[1:2], [b""]), tmp_path / "page.html")["options"][0] == "German → English"


def test_a_model_of_many_languages_is_one_entry_with_a_list_for_each_side(tmp_path: Path) -> None:
    codes = ["zh-Hant", "ak-Latn", "twi_Latn", "es", "en", "x", "ar"]
    many = {**offered("many", b""), "languages": codes}
    text = server_page({**offered("one", b"", "en-de"), "languages": None}, many)
    asked = [("direction", 1), ("into", "ar"), ("from", "ar"), ("direction", 0), ("direction", 1)]
    found = opened(text, tmp_path / "page.html", languages=["xh", "zh-TW", "de"], choices=asked)
    assert found["options"] == ["English → German · one", "Any language · many"]
    names = [
        "Akan (Latin), ak-Latn",
        "Akan (Latin), twi_Latn",
        "Arabic",
        "English",
        "Spanish",
        "Traditional Chinese",
        "x",
    ]
    assert found["from"] == found["into"] == names
    assert found["titles"] == [
        "Translate English to German",
        "Translate English to Traditional Chinese",
        "Translate English to Arabic",
        "Translate Arabic to English",
        "Translate English to German",
        "Translate Arabic to English",
    ]
    assert found["stored"]["tolka languages many"] == "en ar"


@pytest.mark.parametrize(
    ("languages", "stored", "title"),
    [
        (["en-GB", "de"], "", "German to English"),
        (["xh"], "", "Spanish to English"),
        (["de-AT"], "", "English to German"),
        (["en"], "es ar", "Arabic to Spanish"),
        (["de"], "xh ar", "German to Arabic"),
    ],
)
def test_the_languages_begin_with_those_chosen_last_or_the_person_s(
    tmp_path: Path, languages: list[str], stored: str, title: str
) -> None:
    text = server_page({**offered("many", b""), "languages": ["ar", "de", "en", "es"]})
    kept = {"tolka languages many": stored}
    found = opened(text, tmp_path / "page.html", languages=languages, stored=kept)
    assert found["titles"] == [f"Translate {title}"]


def test_weights_that_were_damaged_on_the_way_are_not_used(tmp_path: Path) -> None:
    """By a changed character, and by a missing end; as they are they reach the worker."""
    weights = [b"first", bytes(range(256))]
    text = join_page("", [offered("mine", each, "en-de") for each in weights], weights)
    sound = opened(text, tmp_path / "page.html")
    assert (sound["notice"], [bytes(each) for each in sound["received"]]) == ("", weights)
    encoded = base64.b64encode(weights[1]).decode()
    for damaged in (encoded.replace("A", "B", 1), encoded[:-4]):
        found = opened(text.replace(encoded, damaged), tmp_path / "page.html")
        assert found["received"] is None
        assert found["notice"] == (
            "This file is damaged or incomplete; please copy or download it again. (wrong checksum)"
        )


def test_a_title_is_text() -> None:
    elements = joined(HOSTILE)
    assert elements.only("title")[1] == elements.only("h1")[1] == HOSTILE
    assert [each[0] for each in elements.found] == [each[0] for each in joined().found]


def test_a_model_without_weights_is_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        join_page("title", [{}, {}], [b""])


@pytest.mark.parametrize("text", [join_page("", [], []), server_page()])
def test_every_element_that_the_script_uses_is_in_the_page(text: str) -> None:
    elements = Elements(text)
    script = elements.only("script", type="module")[1]
    used = {*re.findall(r"\bpage\.([a-z]+)\b", script)}
    assert {"source", "translation", "card"} <= used
    assert used <= {str(named["id"]) for _, named, _ in elements.found if "id" in named}


def test_modules_become_one_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    files = {
        "a.js": 'export const one = "export one";\nexport class A {}\n',
        "b.js": 'import { one } from "./a.js";\nimport {\n  A,\n} from "./a.js";\n\nfunction b() {\n  return one;\n}\n',
    }
    monkeypatch.setattr(page, "_page_file", files.__getitem__)
    assert join_modules(["a", "b"]) == (
        '"use strict";\nconst one = "export one";\nclass A {}\n\nfunction b() {\n  return one;\n}\n'
    )


@pytest.mark.parametrize("text", [join_page("title", [], []), server_page()])
def test_no_two_elements_have_one_id(text: str) -> None:
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) > 20
    assert sorted(ids) == sorted(set(ids))
