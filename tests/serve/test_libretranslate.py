"""The addresses that LibreTranslate's clients and NeMo Curator use."""

import json
import re
from pathlib import Path

import pytest
from copying_model import TOKENIZER, facts, translator
from made_server import DE_EN, EN_DE, application, client, served
from starlette.exceptions import HTTPException

from tolka.search.options import BeamConfig
from tolka.serve.app import Application
from tolka.serve.models import ServedModel, ServedModels
from tolka.serve.options import LimitsConfig
from tolka.serve.suggestions import Suggestions
from tolka.system.progress import silent
from tolka.text.direction import Direction
from tolka.text.readers.columns import TsvFile
from tolka.tokenizer.extension import add_tags
from tolka.translation.request import Request
from tolka.translation.translator import Translator

ASKED = {"q": "red birds", "source": "en", "target": "de"}


def test_fields_are_taken_from_json_a_form_and_the_address() -> None:
    made = client()
    answers = [
        made.post("/translate", json=ASKED),
        made.post("/translate", data=ASKED),
        made.post("/translate", params=ASKED),
        made.post("/translate", files={key: (None, value) for key, value in ASKED.items()}),
    ]
    assert [(each.status_code, each.json()) for each in answers] == [(200, {"translatedText": "red birds"})] * 4


def test_a_list_of_texts_has_a_list_of_translations_with_their_lines() -> None:
    texts = ["red birds", "", "frogs\n\n fish\n"]
    made = client()
    assert made.post("/translate", json={**ASKED, "q": texts}).json() == {
        "translatedText": ["red birds", "", "frogs\n\nfish\n"]
    }
    assert made.post("/translate", data={**ASKED, "q": texts[:2]}).json() == {"translatedText": texts[:2]}


def test_alternatives_are_other_translations_and_as_many() -> None:
    made = client()
    one = made.post("/translate", json={**ASKED, "alternatives": 2}).json()
    assert one["translatedText"] == "red birds"
    assert len(one["alternatives"]) == 2
    assert len({one["translatedText"], *one["alternatives"]}) == 3
    several = made.post("/translate", data={**ASKED, "q": ["red birds", "fish"], "alternatives": 2}).json()
    assert several["alternatives"][0] == one["alternatives"]
    refused = made.post("/translate", json={**ASKED, "alternatives": 16})
    assert refused.status_code == 400
    assert "limits.hypotheses" in refused.json()["error"]


def test_markup_stays_around_its_words() -> None:
    page = '<meta charset="latin1"><p>ré <b>birds</b> &amp; fish</p><script>no()</script>'
    answer = client().post("/translate", json={**ASKED, "q": page, "format": "html"}).json()["translatedText"]
    assert answer == page


def test_the_source_may_be_told_by_the_text() -> None:
    made = client(directions=[EN_DE, DE_EN, Direction("ru", "de")])
    answer = made.post("/translate", json={"q": ["красные птицы", "frogs"], "source": "auto", "target": "de"}).json()
    assert answer["detectedLanguage"][0] == {"language": "ru", "confidence": 100.0}
    assert answer["detectedLanguage"][1]["language"] == "en"
    [found, *_] = made.post("/detect", data={"q": "красные птицы летят"}).json()
    assert found["language"] == "ru"


def test_languages_are_listed_with_their_targets_and_names() -> None:
    made = client(directions=[EN_DE, DE_EN, Direction("en", "zho_Hant")])
    assert made.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "zh-Hant"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "zh-Hant", "name": "Chinese (traditional)", "targets": []},
    ]


def test_a_model_of_many_languages_translates_between_any_two() -> None:
    codes = ["aka_Latn", "eng_Latn", "twi_Latn", "zho_Hans", "zho_Hant"]
    tokenizer = add_tags(TOKENIZER, codes, "source")
    engine = translator(BeamConfig()).engine
    many = ServedModel("many", Translator(engine, facts(tokenizer), Request(BeamConfig())), "")
    models = ServedModels([*served(EN_DE).models, many])
    made = client(Application(models, LimitsConfig(), "", None, silent))
    targets = {each["code"]: each["targets"] for each in made.get("/languages").json()}
    assert list(targets) == ["en", "de", "ak-Latn", "twi_Latn", "zh-Hans", "zh-Hant"]
    assert targets["en"] == ["de", "ak-Latn", "twi_Latn", "zh-Hans", "zh-Hant"]  # of both models
    assert targets["twi_Latn"] == ["ak-Latn", "en", "zh-Hans", "zh-Hant"]
    assert targets["de"] == []
    assert models.translator("en", "ak-Latn").direction == ("eng_Latn", "aka_Latn")
    assert models.translator("en", "twi_Latn").direction == ("eng_Latn", "twi_Latn")
    assert models.translator("zh-Hant", "zh-Hans").direction == ("zho_Hant", "zho_Hans")
    assert models.detect("漢語", "de")[0]["language"] == "en"  # nothing else translates into it
    with pytest.raises(HTTPException, match=r"from en to en; there are: en to de, en to ak-Latn,"):
        models.translator("en", "en")
    about = re.search(r'id="about">(.*?)</script>', made.get("/").text)
    assert about is not None
    offered = [(each["directions"], each["languages"]) for each in json.loads(about[1])["models"]]
    assert offered == [([EN_DE._asdict()], None), ([], ["ak-Latn", "en", "twi_Latn", "zh-Hans", "zh-Hant"])]
    assert made.get("/frontend/settings").json()["language"]["target"]["code"] == "de"


@pytest.mark.parametrize("codes", [("en", "zh-Hant"), ("EN", "zho_Hant"), ("eng", "zh-TW"), ("en-GB", "zh")])
def test_codes_of_a_language_are_equal_in_any_form(codes: tuple[str, str]) -> None:
    made = client(directions=[Direction("en", "zho_Hant")])
    answer = made.post("/translate", json={"q": "fish", "source": codes[0], "target": codes[1]})
    assert answer.json() == {"translatedText": "fish"}


def test_the_exact_code_comes_before_a_near_one() -> None:
    models = application([Direction("en", "zho_Hans"), Direction("en", "zho_Hant")]).models
    assert models.translator("en", "zh-Hant").direction.target == "zho_Hant"
    assert models.translator("en", "zh").direction.target == "zho_Hans"


def test_curators_requests_are_answered_in_its_form() -> None:
    body = {"texts": ["red birds", "fish"], "src_lang": "en", "tgt_lang": "de"}
    assert client().post("/translate", json=body).json() == {"translations": ["red birds", "fish"]}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({**ASKED, "source": "fr"}, 400, "nothing translates from fr to de; there are: en to de"),
        ({"q": "x", "source": "en"}, 400, "lacks the field 'target'"),
        ({**ASKED, "q": 7}, 400, "request.q (7) must be"),
        ({**ASKED, "format": "pdf"}, 400, "format is text or html"),
        ({**ASKED, "alternatives": "many"}, 400, "request.alternatives"),
        ({**ASKED, "q": "a" * 200_000}, 413, "limits.characters"),
        ({**ASKED, "q": "\ud800"}, 409, "half a character"),
        ({**ASKED, "q": "\ud800", "format": "html"}, 409, "half a character"),
    ],
)
def test_what_is_wrong_is_said_in_the_field_error(body: dict[str, object], status: int, words: str) -> None:
    answer = client().post("/translate", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "key"), [("/translate", "q"), ("/detect", "q"), ("/suggest", "s"), ("/v1/sentences", "text")]
)
def test_half_a_character_is_refused_everywhere(path: str, key: str, tmp_path: Path) -> None:
    made = client(suggestions=Suggestions(tmp_path / "kept.tsv", ["en", "de"]))
    fields = {**ASKED, "s": "x"} if path == "/suggest" else {"source": "en", "target": "de"}
    content = json.dumps({**fields, key: "\ud800"})
    answer = made.post(path, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, "half a character" in answer.json()["error"]) == (409, True)


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [(b'{"q": ', "application/json", 400), (b"[1]", "application/json", 400), (b"q", "text/csv", 415)],
)
def test_damaged_bodies_are_refused(content: bytes, kind: str, status: int) -> None:
    answer = client().post("/translate", content=content, headers={"content-type": kind})
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert client().get("/translate").status_code == 405
    assert client().get("/nothing").json() == {"error": "Not Found"}


def test_the_fields_of_other_clients_are_ignored() -> None:
    assert client().post("/translate", json={**ASKED, "secret": "x", "api_key": None}).status_code == 200


def test_a_token_is_taken_from_the_header_or_the_fields() -> None:
    made = client(token="sesame")
    assert made.post("/translate", json=ASKED).status_code == 403
    assert made.post("/translate", json={**ASKED, "api_key": "wrong"}).status_code == 403
    assert made.post("/translate", json={**ASKED, "api_key": "sesame"}).status_code == 200
    assert made.post("/translate", json=ASKED, headers={"authorization": "Bearer sesame"}).status_code == 200
    assert made.get("/metrics").status_code == 403
    assert made.get("/metrics", headers={"authorization": "Bearer sesame"}).status_code == 200
    assert made.get("/frontend/settings").json()["keyRequired"] is True


def test_corrections_become_a_table_that_is_read_as_parallel_text(tmp_path: Path) -> None:
    path = tmp_path / "kept.tsv"
    made = client(suggestions=Suggestions(path, ["en", "de"]))
    asked = {"q": "red\tbirds", "s": "rote Vögel\n", "source": "en", "target": "de"}
    assert made.post("/suggest", data=asked).json() == {"success": True}
    Suggestions(path, ["en", "de"])  # a server that is started again goes on with the file
    assert made.post("/suggest", json={**asked, "translation": "red"}).status_code == 200
    assert path.read_text() == "en\tde\ttranslation\nred birds\trote Vögel\t\nred birds\trote Vögel\tred\n"
    pairs = [(pair.source, pair.target) for pair in TsvFile(path, "kept", EN_DE, []).read()]
    assert pairs == [("red birds", "rote Vögel")] * 2
    assert made.post("/suggest", json={**asked, "s": " "}).status_code == 409
    assert client().post("/suggest", json=asked).status_code == 403  # where nothing is kept
