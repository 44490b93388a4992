"""Open a page in headless Chromium as a reader would, through a static server, and say what it shows."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import process
from ftnumpy.errors import BuildError

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 90.0  # seconds for a browser to start, load and draw
PROBE = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the page last told: script ``errors``, pixels in ``coloured`` lines, axis ``labels``, its ``text``."""

    errors: tuple[str, ...]
    coloured: int
    labels: int
    text: str


def find() -> str | None:
    """The browser on PATH."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def look(browser: str, folder: Path, address: str, screenshot: Path, log: Path) -> Seen:
    """Open ``address`` (``index.html#…``) of the pages in ``folder``; ``screenshot`` is a PNG of what is there.

    Raises `CommandFailed` when the browser fails, `BuildError` when the page told nothing.
    """
    told: list[Seen] = []
    with _served(folder, told) as url, tempfile.TemporaryDirectory(prefix="browser-") as profile:
        process.run(
            [
                *(browser, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,900"),
                # Chromium's sandbox doesn't start for root; the page is ours.
                *(["--no-sandbox"] if os.geteuid() == 0 else []),
                *(f"--user-data-dir={profile}", "--no-first-run", "--disable-background-networking"),
                *("--virtual-time-budget=8000", f"--screenshot={screenshot}", f"{url}/{address}"),
            ],
            what=f"a look at {address}",
            log=log,
            timeout=PATIENCE,
        )
    if not told:
        raise BuildError(f"{address} in {folder} was opened and told nothing; the browser's log: {log}")
    return told[-1]


@contextmanager
def _served(folder: Path, told: list[Seen]) -> Iterator[str]:
    handler = functools.partial(_Handler, told, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()
            thread.join()


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, with the probe in the page; takes what it tells."""

    def __init__(self, told: list[Seen], *arguments: object, **more: object) -> None:
        self.told = told
        super().__init__(*arguments, **more)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/index.html"):
            super().do_GET()
            return
        page = (Path(self.directory) / "index.html").read_text(encoding="utf-8")
        body = page.replace("<head>", f"<head><script>{PROBE}</script>", 1).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append(Seen(**(seen | {"errors": tuple(seen["errors"])})))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass
