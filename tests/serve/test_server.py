"""The command mt-serve as a process: its start, reload, end, and what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from conftest import Command

START = "import sys; from tolka.cli import mt_serve; mt_serve()"
ASKED = {"q": "ferry", "source": "xa", "target": "xb"}


class Server:
    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self.log = process, log
        self.address = self.wait_for(" answers;").split()[0]

    def wait_for(self, words: str) -> str:
        """The line of the log with these words, once it is there."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for line in self.log.read_text().splitlines():
                if words in line:
                    return line
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no '{words}' in {self.log.read_text()}")

    def ask(self, values: dict[str, Any] = ASKED, address: str = "/translate") -> Any:
        request = Request(f"{self.address}{address}", json.dumps(values).encode(), {"content-type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def started(log: Path, *arguments: object, start: str = START) -> Iterator[Server]:
    command = [sys.executable, "-c", start, *map(str, arguments), "--port", "0"]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        yield Server(process, log)
    finally:
        process.kill()
        process.wait()


def test_models_are_opened_again_and_a_damaged_one_is_not(trained: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(trained / "best", model)
    with started(tmp_path / "log", model, "decoding.backend=torch") as server:
        before = server.ask()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("opened again")
        assert server.ask() == before
        (model / "model.safetensors").write_bytes(b"damaged")
        server.process.send_signal(signal.SIGHUP)
        assert "model.safetensors" in server.wait_for("the models stay as they are")
        assert server.ask() == before
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_are_answered_before_the_end(trained: Path, tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path / "log", trained) as server:
        text = "ferry lantern . " * 500
        body = json.dumps({**ASKED, "q": text}).encode()
        kind = "Host: localhost\r\nContent-Type: application/json"
        head = f"POST /translate HTTP/1.1\r\n{kind}\r\nContent-Length: {len(body)}"
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(f"{head}\r\n\r\n".encode() + body)
            time.sleep(0.3)
            server.process.send_signal(number)
            answer = b"".join(iter(lambda: connection.recv(2**16), b""))
        assert b"200 OK" in answer
        assert b"translatedText" in answer
        assert server.process.wait(30) == 0


@pytest.mark.slow
def test_an_exported_model_is_served_without_torch(trained: Path, command: Command, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    assert command("mt-train", "export", trained, "--to", "ctranslate2", "-o", tmp_path / "exported").code == 0
    hidden = f"import sys; sys.modules['torch'] = sys.modules['datasets'] = None; {START}"
    with started(tmp_path / "log", tmp_path / "exported", start=hidden) as server:
        texts = ["ferry lantern .", "<p>ferry <b>kettle</b></p>"]
        found = server.ask({**ASKED, "q": texts, "format": "html"})["translatedText"]
        assert found[1].startswith("<p>")
        assert found[1].count("<b>") == found[1].count("</b>") == 1
        detailed = {"texts": "ferry", "source": "xa", "target": "xb", "attention": True, "search": {"n_best": 2}}
        [values] = server.ask(detailed, "/v1/translate")["translations"]
        assert len(values["hypotheses"]) == 2
        assert values["hypotheses"][0]["alignment"] is not None
        assert values["attention"]
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


def test_what_cannot_be_served_is_one_line(command: Command, trained: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"--port {port}: Address already in use" in command("mt-serve", trained, "--port", port).error
    assert "mt-serve needs a model" in command("mt-serve").error
    assert "--port 70000" in command("mt-serve", trained, "--port", 70000).error
    assert "no such model directory" in command("mt-serve", tmp_path / "none").error
    assert "limits.seconds (0) must be at least 1" in command("mt-serve", trained, "limits.seconds=0").error
    assert "Keys of limits: limits.characters" in command("mt-serve", trained, "limits.colour=red").error
    assert ".tsv" in command("mt-serve", trained, "--suggestions", tmp_path / "a.csv", "--port", 0).error
    (tmp_path / "other.tsv").write_text("fr\tde\n")
    answer = command("mt-serve", trained, "--suggestions", tmp_path / "other.tsv", "--port", 0)
    assert "columns for other languages than xa, xb" in answer.error
