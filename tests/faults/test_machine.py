"""Homes that can't be written, no network, a wrong clock, odd names, other users: it works, or the run says why not."""

from __future__ import annotations

import http.server
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy as toys
from toy import CPYTHON, NUMPY, Toy

from ftnumpy.settings import ROOT

NOBODY = 65534


@pytest.fixture
def user() -> int | None:
    """Someone for whom permissions count: who runs this, or nobody in root's place."""
    if os.geteuid() != 0:
        return None
    try:
        subprocess.run([sys.executable, "-c", "import ftnumpy"], user=NOBODY, group=NOBODY, cwd=ROOT, check=True)
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("other users can't run this Python or read this checkout; run this as one of them")
    return NOBODY


@pytest.fixture
def open_toy(user: int | None) -> Iterator[Toy]:
    """A toy checkout that belongs to ``user``; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        toy = toys.make(folder / "checkout", folder / "cache")
        (folder / "home").mkdir()
        toy.variables["HOME"] = str(folder / "home")
        if user is not None:
            for each in [folder, *folder.rglob("*")]:
                os.chown(each, user, user)
        yield toy
        for each in [folder, *folder.rglob("*")]:
            if each.is_dir():
                each.chmod(0o755)


def test_another_user_than_root(open_toy: Toy, user: int | None) -> None:
    assert open_toy.run(user=user).code == 0
    open_toy.assert_whole()
    assert open_toy.run(user=user).code == 0


def test_a_home_that_can_not_be_written(open_toy: Toy, user: int | None) -> None:
    home = Path(open_toy.variables["HOME"])
    home.chmod(0o555)
    ended = open_toy.run(user=user, FTNUMPY_CACHE="", XDG_CACHE_HOME="")
    assert ended.code == 1, ended
    assert "Permission denied" in ended.err and "FTNUMPY_CACHE" in ended.err and "Traceback" not in ended.err
    assert open_toy.run(user=user).code == 0
    open_toy.assert_whole()
    assert toys.names(home) == []


@pytest.mark.parametrize(
    "place", ["cache/locks", "cache/builds", "cache/logs", "checkout/.build", "checkout/wheelhouse"]
)
def test_a_folder_that_can_not_be_written(open_toy: Toy, user: int | None, place: str) -> None:
    folder = open_toy.root.parent / place
    folder.mkdir(parents=True)
    for each in (folder.parent, folder):
        if user is not None:
            os.chown(each, user, user)
    folder.chmod(0o555)
    ended = open_toy.run(user=user)
    assert ended.code in (1, 6), ended
    assert "Permission denied" in ended.err and "Traceback" not in ended.err
    folder.chmod(0o755)
    assert open_toy.run(user=user).code == 0
    open_toy.assert_whole()


def test_builds_of_root_that_a_user_may_only_read(open_toy: Toy, user: int | None) -> None:
    """Said once, with the file that stands in the way; nothing of it changes."""
    assert open_toy.run(user=user).code == 0
    for each in [open_toy.cache, *open_toy.cache.rglob("*")]:
        each.chmod(each.stat().st_mode & ~0o222)
    ended = open_toy.run(user=user)
    assert ended.code == 1 and "Permission denied" in ended.err and "Traceback" not in ended.err
    for each in [open_toy.cache, *open_toy.cache.rglob("*")]:
        each.chmod(each.stat().st_mode | 0o200)
    open_toy.assert_whole()


class _StallingServer(http.server.SimpleHTTPRequestHandler):
    """Sends three quarters of the first file that is asked for, and then nothing until it is told to go on."""

    ranges: list[str | None]
    go_on: threading.Event

    def do_GET(self) -> None:
        data = Path(self.translate_path(self.path)).read_bytes()
        asked = self.headers.get("Range")
        self.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if len(self.ranges) == 1:
            self.wfile.write(data[: 3 * len(data) // 4])
            self.go_on.wait(60)
        else:
            self.wfile.write(data[start:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_the_middle_of_a_transfer(toy: Toy, number: signal.Signals) -> None:
    folder = str(toy.root / "sources")

    class Handler(_StallingServer):
        ranges: list[str | None] = []  # noqa: RUF012 - one server's, for this test
        go_on = threading.Event()

        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=folder)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        toys.write_stack(toy.root, ("cache", "url"), f"http://127.0.0.1:{server.server_address[1]}")
        part = toy.cache / "archives" / f"{CPYTHON}.part"
        proxies = {"no_proxy": "127.0.0.1"}
        run = toy.start(**proxies)
        toys.until(lambda: part.exists() and part.stat().st_size > 0, "nothing came", run)
        run.send_signal(number)
        toys.end(run)
        Handler.go_on.set()
        have = part.stat().st_size
        assert 0 < have < (toy.root / "sources" / CPYTHON).stat().st_size
        ended = toy.run(**proxies)
        server.shutdown()
    assert ended.code == 0, ended
    assert Handler.ranges[:2] == [None, f"bytes={have}-"], "what had come was fetched again"
    toy.assert_whole()


def test_no_network_and_nothing_in_the_cache(toy: Toy) -> None:
    toys.write_stack(toy.root, ("cache", "url"))
    ended = toy.run(no_proxy="127.0.0.1")
    assert ended.code == 3, ended
    assert "Connection refused" in ended.err and "By hand: put" in ended.err and "Traceback" not in ended.err
    ended = toy.run(FTNUMPY_OFFLINE="1")
    assert ended.code == 3 and "not tried, FTNUMPY_OFFLINE is set" in ended.err


def test_offline_the_tools_come_from_the_cache_or_are_named(toy: Toy) -> None:
    ended = toy.run(FTNUMPY_OFFLINE="1")
    assert ended.code == 3 and "toy-tool==1.0 are not in" in ended.err.replace("\n", " ")
    assert "download" not in toy.phases()
    assert toy.run().code == 0
    shutil.rmtree(next(toy.cache.joinpath("builds").glob("numpy-*")))
    before = len(toy.phases())
    ended = toy.run(FTNUMPY_OFFLINE="1")
    assert ended.code == 0, ended
    assert "wheel" in toy.phases()[before:] and "download" not in toy.phases()[before:]
    toy.assert_whole()


def test_a_clock_before_the_release(toy: Toy) -> None:
    """``make`` would take all that it makes for older than what it is made from."""
    in_the_future = 4_000_000_000
    toys.write_archive(toy.root / "sources" / NUMPY, {"pyproject.toml": b'version = "2.4.6"\n'}, in_the_future)
    toys.write_stack(toy.root)
    ended = toy.run()
    assert ended.code == 5, ended
    assert "clock says" in ended.err and "numpy-2.4.6.tar.gz has files of 2096-10-02" in ended.err.replace("\n", " ")
    assert toys.names(toy.cache / "work") == []


@pytest.mark.parametrize("when", [0, 4_000_000_000])
def test_files_that_a_wrong_clock_dated(toy: Toy, when: int) -> None:
    assert toy.run().code == 0
    for folder in (toy.cache, toy.root / ".build"):
        for file in folder.rglob("*"):
            os.utime(file, (when, when), follow_symlinks=False)
    before = len(toy.phases())
    assert toy.run().code == 0
    assert toy.phases()[before:] == [], "something was made again"
    toy.assert_whole()


@pytest.mark.parametrize("name", ["with space", "häuser-日本", "it's $HOME; #1", "-dash"])
def test_the_checkouts_name(tmp_path: Path, name: str) -> None:
    toy = toys.make(tmp_path / name, tmp_path / "cache")
    ended = toy.run()
    assert ended.code == 0, ended
    toy.assert_whole()


def test_the_caches_name(toy: Toy) -> None:
    toy.cache = toy.cache / "a+b@c~d"
    assert toy.run().code == 0
    toy.assert_whole()


@pytest.mark.parametrize(
    "name", ["with space", "häuser", "a:b", "it's", "$HOME", "a#b", "a=b", "a;b", "a%b", os.fsdecode(b"\xff")]
)
def test_a_name_that_makefiles_can_not_take(toy: Toy, name: str) -> None:
    toy.cache = toy.cache / name
    ended = toy.run()
    assert ended.code == 2, ended
    assert "set FTNUMPY_CACHE to a folder of ASCII letters" in ended.err.replace("\n", " ")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_an_output_that_can_not_show_our_letters(toy: Toy, variables: dict[str, str]) -> None:
    ended = toy.run(**variables)
    assert ended.code == 0, ended
    assert "CPython, patched" in ended.out


def test_nobody_reads_the_output(toy: Toy) -> None:
    run = toy.start()
    assert run.stdout is not None and run.stderr is not None
    run.stdout.close()
    said = run.stderr.read()
    assert run.wait(toys.PATIENCE) == 1
    assert "Traceback" not in said and "BrokenPipe" not in said, said
    assert toy.run().code == 0
    toy.assert_whole()
