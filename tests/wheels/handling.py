"""What the trials have in common: unpack the archive, serve a folder, run a command."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


def unpack(wheelhouse: Path, target: Path) -> Path:
    """Unpack the archive for uv into ``target``; returns the interpreter."""
    (archive,) = wheelhouse.glob("cpython-*.tar.gz")
    target.mkdir(parents=True, exist_ok=True)
    said("tar", "-xzf", archive, "-C", target)
    return target / "python" / "bin" / "python3.13t"


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """``folder`` on a web server of files; yields its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def said(*command: str | Path, **environment: str) -> str:
    """What ``command`` writes; a failure shows all of it.  No configuration of the user's or of this machine's pip
    counts, and no proxy."""
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PIP_CONFIG_FILE": "/dev/null", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=clean | environment, stdin=subprocess.DEVNULL, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
