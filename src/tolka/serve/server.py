"""The process of a server: its socket, its signals, and its end."""

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from types import FrameType

import uvicorn

from tolka.errors import ConfigError
from tolka.jobs.options import TranslateConfig
from tolka.serve.app import Application
from tolka.serve.models import ServedModels
from tolka.serve.options import LimitsConfig
from tolka.serve.suggestions import Suggestions
from tolka.system.memory import share_freed_memory
from tolka.system.progress import Say

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_CONNECTIONS = 1000
_LAST_SECONDS = 20  # that requests have to be answered once the server is asked to stop


def serve(
    names: Sequence[Sequence[Path]],
    config: TranslateConfig,
    limits: LimitsConfig,
    host: str,
    port: int,
    name: str,
    token: str,
    suggestions: Path | None,
    say: Say,
) -> None:
    """Answer requests until SIGINT or SIGTERM; SIGHUP opens the models again.

    names: the folders of each model, of which several translate together. port: 0 = any that is free. name: by which a
    proxy asks; "" = none. token: that requests must have; "" = none. suggestions: the file of corrections; None = they
    are refused. say: receives notes. TolkaError, in one line, for a model that cannot be opened and a port that is not
    free.
    """
    share_freed_memory()
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of each damaged form
    with _listening(host, port) as listening:
        models = ServedModels.open(names, config, say)
        codes = chain.from_iterable((*chain(*each.directions), *each.languages.values()) for each in models.models)
        kept = Suggestions(suggestions, [*dict.fromkeys(codes)]) if suggestions else None
        application = Application(models, limits, token, kept, say)
        options = uvicorn.Config(
            application.guarded([*_LOOPBACK, name] if host in _LOOPBACK else []),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_SECONDS,
        )

        async def reload(hangup: asyncio.Event) -> None:
            while await hangup.wait():
                hangup.clear()
                try:
                    application.models = await asyncio.to_thread(ServedModels.open, names, config, say)
                except Exception as error:  # whatever it is, the old models go on answering
                    say(f"warning: the models stay as they are: {error}")
                else:
                    application.metrics.reloads += 1
                    say("the models have been opened again")

        async def run() -> None:
            hangup = asyncio.Event()
            if hasattr(signal, "SIGHUP"):
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
            reloading = asyncio.create_task(reload(hangup))
            await _Server(options).serve(sockets=[listening])
            reloading.cancel()

        address = f"[{host}]" if ":" in host else host
        say(f"http://{address}:{listening.getsockname()[1]} answers; Ctrl-C stops it")
        try:
            asyncio.run(run())
        finally:
            application.documents.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; ConfigError if nothing can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if port not in range(2**16):
            raise OSError("ports have numbers up to 65535")
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"--host {host} --port {port}: {reason}; --port 0 takes any port that is free") from None


class _Server(uvicorn.Server):
    """A server that signals end with exit code 0: uvicorn's raises them again when it has ended."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True
