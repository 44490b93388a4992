"""A release small enough to serve from 127.0.0.1, and the server that serves it well or badly."""

from __future__ import annotations

import hashlib
import http.server
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ftnumpy import apt_mirrors, download, pip_index
from ftnumpy.settings import Settings, read_settings
from ftnumpy.stack import Release

BODY = random.Random(1).randbytes(600_000)


@dataclass
class Answer:
    """What the server does with one request: status and body; perhaps cut short, without ranges, with the range
    shifted, or after a pause in seconds."""

    body: bytes = BODY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    ranges: bool = True
    shift: int = 0
    pause: float = 0.0


@dataclass
class Server:
    """``answers`` maps a path to what is done at the first, second, ... request; the last one is repeated."""

    url: str
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def ranges(self) -> list[str | None]:
        return [headers.get("Range") for _, headers in self.requests]


def _handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append((self.path, dict(self.headers)))
            planned = server.answers.get(self.path, [Answer(b"", 404)])
            answer = planned.pop(0) if len(planned) > 1 else planned[0]
            status, body, extra = answer.status, answer.body, dict(answer.headers)
            asked = self.headers.get("Range")
            if asked and answer.ranges and status == 200:
                start = int(asked.removeprefix("bytes=").removesuffix("-")) + answer.shift
                status, extra["Content-Range"] = 206, f"bytes {start}-{len(body) - 1}/{len(body)}"
                body = body[start:]
            time.sleep(answer.pause)
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **extra}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body[: answer.cut])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server("")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(state)) as listener:
        state.url = f"http://127.0.0.1:{listener.server_address[1]}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        listener.shutdown()
        thread.join()


@pytest.fixture
def release(server: Server) -> Release:
    """In the channel ``url`` as ``/official``, in apt's pool as ``pool/pkg.orig.tar.xz``, on the index as ``Pkg``."""
    return Release(
        project="pkg",
        version="1.0",
        archive="Pkg-1.0.tar.xz",
        size=len(BODY),
        sha256=hashlib.sha256(BODY).hexdigest(),
        url=f"{server.url}/official",
        apt_pool="pool/pkg_1.0.orig.tar.xz",
        index_project="My_Pkg",
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"FTNUMPY_CACHE": str(tmp_path / "cache")}, root=tmp_path)


@pytest.fixture(autouse=True)
def lonely_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mirror, no index, no proxy and no waiting, unless a test says so."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    nothing = pip_index.PipConfig(indexes=(), find_links=(), route=download.Route())
    monkeypatch.setattr(pip_index, "ask_pip", lambda: nothing)
    monkeypatch.setattr(apt_mirrors, "ask_apt", lambda: {**apt_mirrors.DEFAULTS, "dir": str(tmp_path)})
    monkeypatch.setattr(download, "BACK_OFF", (0.0, 0.0, 0.0))
