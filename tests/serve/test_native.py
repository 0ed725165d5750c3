"""The addresses of our own: texts in detail, sentences, documents, and what describes the server."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from copying_model import translator
from made_server import DE_EN, EN_DE, application, client

import tolka
from tolka.config.translate_command import translate_config
from tolka.jobs.formats import JsonLines, LineResult
from tolka.serve.app import Application, openapi
from tolka.serve.documents import Documents
from tolka.serve.models import ServedModels
from tolka.serve.options import LimitsConfig
from tolka.serve.service import split_text
from tolka.system.progress import silent
from tolka.text.direction import Direction

ASKED: dict[str, Any] = {"texts": ["red birds", "fish 7"], "source": "en", "target": "de", "details": False}


def test_texts_have_what_jsonl_has_of_them(trained: Path) -> None:
    config = translate_config(["search.n_best=2", "search.max_length_extra=4"])
    models = ServedModels.open([[trained]], config, silent)
    made = client(Application(models, LimitsConfig(), "", None, silent))
    asked = {"texts": ["ferry lantern .", "12"], "source": "xa", "target": "xb"}
    answer = made.post("/v1/translate", json=asked).json()
    alone = tolka.load(trained, config)
    results = [
        LineResult(text, each) for text, each in zip(asked["texts"], alone.translate(asked["texts"]), strict=True)
    ]
    assert answer["translations"] == [json.loads(line) for line in JsonLines(alone, None).lines(results)]
    assert (answer["source"], answer["target"]) == ("xa", "xb")
    [with_maps] = made.post("/v1/translate", json={**asked, "texts": "ferry", "attention": True}).json()["translations"]
    [segment] = with_maps["attention"]
    assert [len(row) for row in segment["weights"]] == [len(segment["columns"])] * len(segment["rows"])
    assert made.get("/languages").json()[0] == {"code": "xa", "name": "xa", "targets": ["xb"]}


def test_a_request_has_its_own_search_glossary_and_prefixes() -> None:
    made = client()
    glossary = {**ASKED, "texts": ["red birds"], "glossary": {"birds": ["Vögel", "Vogel"]}}
    [found] = made.post("/v1/translate", json=glossary).json()["translations"]
    assert re.search("Vögel|Vogel", found["hypotheses"][0]["text"])
    [begun] = made.post("/v1/translate", json={**ASKED, "texts": ["red birds"], "prefixes": ["blue"]}).json()[
        "translations"
    ]
    assert begun["hypotheses"][0]["text"].startswith("blue")
    [banned] = made.post("/v1/translate", json={**ASKED, "texts": ["red birds"], "banned": "red"}).json()[
        "translations"
    ]
    assert not re.search(r"\bred\b", banned["hypotheses"][0]["text"])


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"search": {"beam_size": 17}}, 400, "limits.hypotheses"),
        ({"search": {"max_length_factor": 100.0}}, 400, "subwords for 100"),
        ({"search": {"beam": 3}}, 409, "unknown key 'search.beam'"),
        ({"search": {"glossary": "/etc/passwd"}}, 409, "names a file"),
        ({"glossary": {"birds": {}}}, 400, "request.glossary"),
        ({"prefixes": ["a"]}, 409, "1 for 2"),
        ({"model": "other"}, 400, "there are: copy1"),
        ({"colour": "red"}, 400, "unknown key 'request.colour'"),
        ({"texts": ["a " * 60_000]}, 413, "limits.characters"),
    ],
)
def test_what_a_request_cannot_have_is_said(change: dict[str, Any], status: int, words: str) -> None:
    answer = client().post("/v1/translate", json={**ASKED, **change})
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_a_model_is_chosen_by_its_name() -> None:
    made = client(directions=[EN_DE, DE_EN, EN_DE])
    assert made.post("/v1/translate", json={**ASKED, "model": "copy3"}).status_code == 200
    assert made.post("/v1/translate", json={**ASKED, "model": "copy2"}).status_code == 400


@pytest.mark.parametrize(
    "text", ["One. Two!  Three?", " \n a. b\r\n\r\nc. \n", "", "  ", "\tone\n", "Dr. No came. He left.\nThen"]
)
def test_sentences_and_what_is_between_them_are_the_text(text: str) -> None:
    answer = client().post("/v1/sentences", json={"text": text, "source": "en", "target": "de"}).json()
    sentences, separators = answer["sentences"], answer["separators"]
    joined = separators[0] + "".join(f"{a}{b}" for a, b in zip(sentences, separators[1:], strict=True))
    lines = re.split(r"\r\n?|\n", text)
    # Blanks at the end of a line are left out, as nobody sees them.
    assert joined.split("\n") == [line if not line.strip() else line.rstrip() for line in lines]


def test_sentences_of_languages_without_blanks_between_them() -> None:
    made = translator(direction=Direction("zh", "en"), split="sentences")
    assert split_text(made, "你好。再见。") == {"sentences": ["你好。", "再见。"], "separators": ["", " ", ""]}


def test_a_document_is_translated_and_removed() -> None:
    made = client()
    form = {"source": "en", "target": "de"}
    content = b"# red birds\n\n[fish](a.html) and `code`\n"
    answer = made.post("/translate_file", data=form, files={"file": ("../a b.md", content)})
    address = answer.json()["translatedFileUrl"]
    assert made.get(address).content == content
    assert "a%20b.md" in made.get(address).headers["content-disposition"]
    values = made.get(address.removesuffix("/file")).json()
    assert (values["state"], values["share"], values["report"]["translated"]) == ("done", 1.0, 2)
    assert "tmp" not in json.dumps(values)
    assert made.delete(address.removesuffix("/file")).status_code == 204
    assert made.get(address).status_code == 404
    unknown = made.post("/v1/documents", data=form, files={"file": ("a.pdf", b"%PDF")})
    assert (unknown.status_code, ".docx" in unknown.json()["error"]) == (409, True)
    assert made.post("/v1/documents", data=form).status_code == 400


def test_a_document_may_have_a_long_name() -> None:
    """One of 300 bytes, of which file systems take 255."""
    made, form = client(), {"source": "en", "target": "de"}
    answer = made.post("/translate_file", data=form, files={"file": (f"{'새' * 100}.txt", b"fish\n")})
    assert made.get(answer.json()["translatedFileUrl"]).content == b"fish\n"
    assert made.post("/v1/documents", data=form, files={"file": ("..", b"fish\n")}).status_code == 409


def test_a_broken_document_is_said_to_be_so() -> None:
    form = {"source": "en", "target": "de"}
    answer = client().post("/translate_file", data=form, files={"file": ("a.docx", b"no zip")})
    assert answer.status_code == 400
    assert "a.docx" in answer.json()["error"]
    assert "tmp" not in answer.json()["error"]


def test_documents_are_kept_for_an_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = Documents(silent)
    key, future = kept.submit("a.html", io.BytesIO(b"<p>red birds</p>"), translator(direction=EN_DE))
    future.result(60)
    folder = kept.find(key).path.parent
    monkeypatch.setattr("tolka.serve.documents._KEPT_SECONDS", -1.0)
    with pytest.raises(Exception, match="kept for an hour"):
        kept.find(key)
    assert not folder.exists()
    kept.close()
    assert not folder.parent.exists()


def test_the_description_names_every_address() -> None:
    made = application([EN_DE, DE_EN])
    described = openapi(made.models, LimitsConfig(hypotheses=7))
    assert described["components"]["schemas"]["Source"]["enum"] == ["en", "de"]
    app: Any = made.guarded([])._app
    routes = {(route.path, method) for route in app.routes for method in route.methods - {"HEAD"}}
    documented = {
        (path, method.upper())
        for path, methods in described["paths"].items()
        for method in methods
        if method != "parameters"
    }
    assert routes - documented == {("/", "GET"), ("/openapi.json", "GET")}
    assert documented <= routes


def test_metrics_count_requests_by_address_and_status() -> None:
    made = client()
    made.post("/v1/translate", json=ASKED)
    made.post("/v1/translate", json={})
    made.get("/nowhere/at/all")
    lines = made.get("/metrics").text.splitlines()
    assert 'tolka_requests_total{path="/v1/translate",status="200"} 1' in lines
    assert 'tolka_requests_total{path="/v1/translate",status="400"} 1' in lines
    assert 'tolka_requests_total{path="other",status="404"} 1' in lines
    assert "tolka_texts_total 2" in lines
    assert "tolka_waiting_characters 0" in lines
    for line in lines:  # the format: name, labels, number
        assert re.fullmatch(r'# TYPE \w+ (counter|gauge|histogram)|\w+(\{(\w+="[^"]*",?)+\})? -?[\d.e+-]+', line), line


def test_the_page_asks_its_own_server_alone() -> None:
    answer = client().get("/")
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', answer.text)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "connect-src 'self'" in policy[1]
