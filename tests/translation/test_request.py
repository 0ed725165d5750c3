"""A request says what differs between two calls of one translator."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from copying_model import translator as copying

import tolka
from tolka import Direction, Request
from tolka.errors import ConfigError
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.sampling import SamplingConfig
from tolka.terminology.glossary import Entry

TEXTS = ["ferry . kettle", "", "lantern"]


def test_a_search_is_named_described_or_given() -> None:
    assert Request("greedy").search == GreedyConfig()
    assert Request({"n_best": 3}).search == BeamConfig(n_best=3)
    assert Request({"name": "sampling", "seed": 3}).search == SamplingConfig(seed=3)
    with pytest.raises(ConfigError, match="unknown search 'gredy'"):
        Request("gredy")
    with pytest.raises(ConfigError, match=r"unknown key 'search\.bean_size'"):
        Request({"bean_size": 3})
    with pytest.raises(ConfigError, match=r"search\.glossary names a file, and a request has what is in it"):
        Request({"glossary": "terms.tsv"})


def test_a_glossary_is_a_mapping_or_entries() -> None:
    expected = (Entry(("gear",), ("Gang",)), Entry(("dog",), ("Hund", "Rüde")))
    assert Request(glossary={"gear": "Gang", "dog": ["Hund", "Rüde"]}).glossary == expected
    assert Request(glossary=expected).glossary == expected
    with pytest.raises(TypeError, match=r"glossary\['gear'\] must be a text or several"):
        Request(glossary={"gear": [3]})  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"banned must be several texts, as in \['Gang'\]"):
        Request(banned="Gang")


def test_each_call_has_its_own_search_and_the_next_one_the_translator_s(trained: Path) -> None:
    translator = tolka.load(trained, search="greedy")
    before = translator(TEXTS)
    several = translator.translate(TEXTS, Request({"n_best": 3}))
    assert [len(each.candidates) for each in several] == [3, 1, 3]
    assert [each.text for each in several] == tolka.load(trained, search={"n_best": 3})(TEXTS)
    assert translator(TEXTS) == before == translator(TEXTS, Request())


def test_a_glossary_comes_with_a_call_and_is_gone_with_it(trained: Path) -> None:
    translator = tolka.load(trained)
    [plain] = translator(["ferry"])
    request = Request(glossary={"ferry": "mirka"}, banned=[plain])
    [found] = translator.translate(["ferry"], request)
    assert "mirka" in found.text
    assert plain not in found.text
    assert translator(["ferry"]) == [plain]
    with pytest.raises(ConfigError, match="a glossary needs beam search"):
        translator(["ferry"], Request("greedy", glossary={"ferry": "mirka"}))


def test_requests_with_the_same_terms_share_what_is_made_of_them() -> None:
    made, glossary = copying(), {"ferry": "mirka"}

    def terminology(request: Request) -> Any:
        return made._terminology(request.resolved(made.request))

    first = terminology(Request(BeamConfig(), glossary=glossary))
    assert first is terminology(Request({"beam_size": 2}, glossary=glossary))
    assert first is not terminology(Request(BeamConfig(), glossary=glossary, banned=["ferry"]))


def test_a_direction_that_the_model_does_not_know_is_refused(trained: Path) -> None:
    translator = tolka.load(trained)
    assert translator(["ferry"], Request(direction=Direction("xa", "xb"))) == translator(["ferry"])
    with pytest.raises(ConfigError, match="does not translate from xb to xa; it knows: xa to xb"):
        translator(["ferry"], Request(direction=Direction("xb", "xa")))


def test_what_is_no_request_is_a_clear_error() -> None:
    tick: Any = print
    with pytest.raises(TypeError, match=r"request must be a tolka\.Request, not builtin_function"):
        copying()("frogs", tick)


def test_callers_with_like_requests_share_batches_and_others_do_not() -> None:
    """Three callers wait for a first one; two of them ask for the same."""
    made, entered, go_on = copying(), threading.Event(), threading.Event()
    real = made._translate_alike
    groups: list[list[Any]] = []

    def watched(calls: Any) -> Any:
        entered.set()
        go_on.wait(10)
        groups.append([call.request.search for call in calls])
        return real(calls)

    made._translate_alike = watched  # type: ignore[method-assign]
    requests = [Request(), Request({"beam_size": 2}), Request("greedy"), Request({"beam_size": 2})]
    texts = ["the old boat", "frogs jump", "red birds", "blue fish"]
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(made, texts[0], requests[0])
        entered.wait(10)
        others = [pool.submit(made, *each) for each in zip(texts[1:], requests[1:], strict=True)]
        while len(made._calls._waiting) < 3:
            threading.Event().wait(0.001)
        go_on.set()
        assert [each.result() for each in (first, *others)] == [[text] for text in texts]
    beam = BeamConfig(beam_size=2)
    assert groups[0] == [GreedyConfig()]
    assert sorted(groups[1:], key=len) == [[GreedyConfig()], [beam, beam]]


def test_a_translator_is_pickled_by_its_folder(trained: Path) -> None:
    translator = tolka.load(trained, search={"n_best": 2})
    again = pickle.loads(pickle.dumps(translator))
    assert again.translate(TEXTS) == translator.translate(TEXTS)
    with pytest.raises(TypeError, match=r"only in memory: pickle one that tolka\.load has loaded"):
        pickle.dumps(copying())
