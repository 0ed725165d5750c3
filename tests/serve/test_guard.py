"""Limits, clients that go away, and pages of other sites."""

import asyncio
import threading
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from made_server import EN_DE, application, client
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from tolka.search.options import BeamConfig
from tolka.serve.guard import Guard
from tolka.serve.metrics import Metrics
from tolka.serve.options import LimitsConfig
from tolka.serve.service import Service


class Connection:
    """A client's end of a connection: its messages to the server, and what came back."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages, self.answers, self.is_gone = list(messages), list[MutableMapping[str, Any]](), asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self.messages:
            return self.messages.pop(0)
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.answers.append(message)

    @property
    def status(self) -> int:
        return int(self.answers[0]["status"])


def scope(path: str = "/translate", **headers: str) -> dict[str, Any]:
    listed = [(key.encode(), value.encode()) for key, value in headers.items()]
    return {"type": "http", "method": "POST", "path": path, "headers": listed, "query_string": b""}


def body(content: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


async def read_all(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads the body, and answers 200."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def guard(app: Any = read_all, names: tuple[str, ...] = (), **limits: int) -> Guard:
    return Guard(app, LimitsConfig(**limits), names, Metrics())


def test_whoever_leaves_has_the_work_cancelled() -> None:
    ended = list[str]()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def run() -> None:
        connection = Connection(body(b"x"))
        made = guard(slow)
        work = asyncio.create_task(made(scope(), connection.receive, connection.send))
        await asyncio.sleep(0.05)
        connection.is_gone.set()
        await asyncio.wait_for(work, 5)
        assert connection.answers == []
        assert 'status="499"} 1' in made._metrics.exposition({})

    asyncio.run(run())
    assert ended == ["cancelled"]


def test_texts_of_whoever_leaves_are_not_translated() -> None:
    """A request that waits behind another one is dropped with its client."""
    made = application([EN_DE])
    engine = made.models.models[0].translator.engine
    begun, go_on = asyncio.Event(), threading.Event()
    given = list[int]()
    real = engine.translate

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def slow(search: Any, sources: Any, *rest: Any) -> Any:
            given.append(len(sources))
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(30)
            return real(search, sources, *rest)

        engine.translate = slow
        app = made.guarded([])
        texts = [b'{"q":"fish","source":"en","target":"de"}', b'{"q":["a b","c"],"source":"en","target":"de"}']
        kind = {"content-type": "application/json"}
        clients = [Connection(body(text)) for text in texts]
        first = asyncio.create_task(app(scope(**kind), clients[0].receive, clients[0].send))
        await begun.wait()
        second = asyncio.create_task(app(scope(**kind), clients[1].receive, clients[1].send))
        await asyncio.sleep(0.1)
        clients[1].is_gone.set()
        await second
        go_on.set()
        await first
        assert clients[0].status == 200
        await asyncio.sleep(0.1)

    asyncio.run(run())
    assert given == [1]
    assert made.service.waiting == 0


@pytest.mark.parametrize(
    ("messages", "limits", "status"),
    [
        ([body(b"x" * 2**16, more=True), body(b"x")], {"characters": 1}, 413),
        ([body(b"x" * 2**16)], {"characters": 1}, 200),
        ([body(b"x", more=True)], {"seconds": 1}, 408),
    ],
)
def test_a_body_that_is_too_large_or_never_ends_is_refused(
    messages: list[dict[str, Any]], limits: dict[str, Any], status: int
) -> None:
    async def run() -> None:
        connection = Connection(*messages)
        await asyncio.wait_for(guard(**limits)(scope(), connection.receive, connection.send), 10)
        assert connection.status == status
        closes = (b"connection", b"close") in connection.answers[0]["headers"]
        assert closes == (status != 200)  # what is left of the body is not read as the next request

    asyncio.run(run())


def test_all_bodies_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.serve.guard._MOST_READ", 100)

    async def run() -> None:
        made = guard()
        waiting = Connection(body(b"x" * 60, more=True))
        task = asyncio.create_task(made(scope(), waiting.receive, waiting.send))
        await asyncio.sleep(0.05)
        second = Connection(body(b"x" * 60))
        await made(scope(), second.receive, second.send)
        assert second.status == 503
        assert (b"retry-after", b"1") in second.answers[0]["headers"]
        waiting.messages.append(body(b""))
        waiting.is_gone.set()
        await task
        third = Connection(body(b"x" * 60))
        await made(scope(), third.receive, third.send)
        assert third.status == 200

    asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "names", "status"),
    [
        ({"host": "localhost:5000"}, ("localhost",), 200),
        ({"host": "evil.example:5000"}, ("localhost",), 403),  # a name that an attacker lets point here
        ({"host": "evil.example:5000"}, (), 200),
        ({"host": "[::1]:5000"}, ("::1",), 200),
        ({"host": "LocalHost"}, ("localhost",), 200),
        ({"host": "[:5000"}, ("localhost",), 403),
        ({"host": "localhost:5000", "origin": "http://localhost:5000"}, (), 200),
        ({"host": "localhost:5000", "origin": "https://evil.example"}, (), 403),
        ({"host": "localhost:5000", "origin": "null"}, (), 403),
        ({"host": "localhost:5000", "origin": "http://["}, (), 403),
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[str, str], names: tuple[str, ...], status: int) -> None:
    async def run() -> None:
        connection = Connection(body(b"x"))
        await guard(names=names)(scope(**headers), connection.receive, connection.send)
        assert connection.status == status

    asyncio.run(run())


def test_what_waits_has_a_limit_and_an_estimate() -> None:
    service = Service(LimitsConfig(waiting=10), Metrics())

    async def run() -> None:
        # One request is taken however large it is: limits.characters is its limit. Each text counts one more.
        async with service.admitted(["x" * 49], BeamConfig()):
            with pytest.raises(HTTPException, match=r"limits\.waiting") as refused:
                await service.admitted([""], BeamConfig()).__aenter__()
            assert refused.value.status_code == 503
            assert int((refused.value.headers or {})["Retry-After"]) >= 1
            assert service.waiting == 50
        async with service.admitted(["x" * 9], BeamConfig()):
            assert service.waiting == 10
        assert service.waiting == 0

    asyncio.run(run())


def test_what_takes_too_long_gets_a_time_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made = application([EN_DE], seconds=1)

    async def never(*given: object) -> list[Any]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(type(made.models.models[0].translator), "translate_async", never)
    answer = client(made).post("/translate", json={"q": "fish", "source": "en", "target": "de"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert list(answer.json()) == ["error"]


def test_freed_memory_goes_back_once_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back = list[str]()
    monkeypatch.setattr("tolka.serve.service._REST_SECONDS", 0.05)
    monkeypatch.setattr("tolka.serve.service.return_freed_memory", lambda: given_back.append("all"))
    service = application([EN_DE]).service

    async def run() -> None:
        for _ in range(2):  # the second request comes before the memory of the first is given back
            async with service.admitted(["fish"], BeamConfig()):
                await asyncio.sleep(0.1)
                assert given_back == []
        await asyncio.sleep(0.2)

    asyncio.run(run())
    assert given_back == ["all"]


def test_an_unforeseen_error_is_answered_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    made = application([EN_DE])

    async def fail(*given: object) -> list[Any]:
        raise ZeroDivisionError("secret path")

    monkeypatch.setattr(type(made.models.models[0].translator), "translate_async", fail)
    app = made.guarded([])
    answer = TestClient(app, raise_server_exceptions=False).post(
        "/translate", json={"q": "fish", "source": "en", "target": "de"}
    )
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert 'tolka_requests_total{path="/translate",status="500"} 1' in made.metrics.exposition({})
    assert app._reading == 0


def test_whoever_leaves_in_the_midst_of_a_body_is_no_failure_of_the_server() -> None:
    made = application([EN_DE])

    async def run() -> None:
        connection, app = Connection(body(b'{"q"', more=True)), made.guarded([])
        connection.is_gone.set()
        kind = {"content-type": "application/json"}
        await asyncio.wait_for(app(scope(**kind), connection.receive, connection.send), 5)
        assert (connection.answers, app._reading) == ([], 0)

    asyncio.run(run())
    assert 'tolka_requests_total{path="/translate",status="499"} 1' in made.metrics.exposition({})


def test_every_answer_belongs_to_its_request() -> None:
    """Forty requests at once, of different forms and lengths, to a model that copies."""
    with client(application([EN_DE])) as made, ThreadPoolExecutor(8) as pool:

        def ask(number: int) -> bool:
            texts = [f"fish {number} {row}" for row in range(1 + number % 5)]
            if number % 3:
                answer = made.post("/translate", json={"q": texts, "source": "en", "target": "de"}).json()
                return bool(answer == {"translatedText": texts})
            asked = {
                "texts": texts,
                "source": "en",
                "target": "de",
                "search": {"beam_size": 1 + number % 4},
                "details": False,
            }
            found = made.post("/v1/translate", json=asked).json()["translations"]
            return [each["hypotheses"][0]["text"] for each in found] == texts

        assert all(pool.map(ask, range(40)))
