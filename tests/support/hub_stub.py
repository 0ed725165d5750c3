"""A server on this machine that answers as the Hugging Face Hub does when a model is uploaded.

Its paths and answers are those that huggingface_hub sends and reads: create a repository, ask how each file shall be
sent, send large files (Git LFS), and commit.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class HubStub:
    """What the server was told. files: path -> content of what was committed. refuses: a status to answer with."""

    address: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    refuses: int = 0


@contextmanager
def serving() -> Iterator[HubStub]:
    """Run the server in a thread; yield what it is told."""
    hub = HubStub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(hub: HubStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def do_PUT(self) -> None:
            self.do_POST()

        def _answer(self, body: bytes) -> None:
            path = self.path.partition("?")[0]
            hub.requests.append(f"{self.command} {path}")
            hub.tokens |= {self.headers["authorization"]} if self.headers.get("authorization") else set()
            status, answer = (hub.refuses, {}) if hub.refuses else _answer(hub, self.command, path, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    return Handler


def _answer(hub: HubStub, method: str, path: str, body: bytes) -> tuple[int, Any]:
    """Return status and answer of one request."""
    parts = path.strip("/").split("/")
    if path == "/api/repos/create":
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if name in hub.private:
            return 409, {"error": "You already created this model repo", "url": f"{hub.address}/{name}"}
        hub.private[name] = asked.get("visibility") == "private" or bool(asked.get("private"))
        return 200, {"url": f"{hub.address}/{name}"}
    if path == "/api/validate-yaml":
        return 200, {"errors": [], "warnings": []}
    if parts[-1] == "batch":
        objects = [
            {
                "oid": each["oid"],
                "size": each["size"],
                "actions": {"upload": {"href": f"{hub.address}/blob/{each['oid']}"}},
            }
            for each in json.loads(body)["objects"]
        ]
        return 200, {"transfer": "basic", "objects": objects}
    if parts[0] == "blob":
        hub.blobs[parts[1]] = body
        return (200, {}) if hashlib.sha256(body).hexdigest() == parts[1] else (400, {"error": "another checksum"})
    repository = "/".join(parts[2:4])
    if parts[:2] == ["api", "models"] and repository in hub.private:
        return _of_repository(hub, repository, parts[4:], body)
    return 404, {"error": "Not Found"}


def _of_repository(hub: HubStub, repository: str, parts: list[str], body: bytes) -> tuple[int, Any]:
    if not parts or parts[0] == "revision":
        return 200, {"id": repository, "private": hub.private[repository], "siblings": [], "sha": "0" * 40}
    if parts[0] == "preupload":
        large = (".safetensors", ".model")
        files = [
            {
                "path": each["path"],
                "uploadMode": "lfs" if each["path"].endswith(large) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for each in json.loads(body)["files"]
        ]
        return 200, {"files": files}
    if parts[0] == "commit":
        for line in body.decode().splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                hub.messages.append(value["summary"])
            elif item["key"] == "file":
                hub.files[value["path"]] = base64.b64decode(value["content"])
            else:
                hub.files[value["path"]] = hub.blobs[value["oid"]]
        address = f"{hub.address}/{repository}"
        return 200, {"commitUrl": f"{address}/commit/{'0' * 40}", "commitOid": "0" * 40, "pullRequestUrl": None}
    return 404, {"error": "Not Found"}
