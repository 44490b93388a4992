"""A checkout whose CPython and NumPy are a few lines each, so that every phase of a run takes a moment.

Everything between the command line and the commands of upstream's builds is the toolchain's own code.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ftnumpy import patchqueue
from ftnumpy.git import git
from ftnumpy.settings import ROOT

HERE = Path(__file__).parent
PATIENCE = 240.0  # seconds, for a run to come to a phase on a busy machine
RELEASED = 1_700_000_000  # when the toy releases were made, in Unix time
CPYTHON, NUMPY = "Python-3.13.15.tar.gz", "numpy-2.4.6.tar.gz"

CONFIGURE = """#!/bin/sh
phase configure
for word; do case $word in --prefix=*) prefix=${word#--prefix=};; esac; done
sed "s|@PREFIX@|$prefix|g" Makefile.in >Makefile
"""
# A name in the recipe's `phase`: which step of the build has begun.
MAKEFILE = f"""
all: python
python: interpreter.py
\tphase compile
\tsed -e "s/@VERSION@/3.13.15/" -e "s/@BUILD@/`$(GITTAG)`:`$(GITVERSION)`/" interpreter.py >half
\t{{ echo '#!{sys.executable}'; cat half; }} >python
install: all
\tmkdir -p "$(DESTDIR)@PREFIX@/bin" "$(DESTDIR)@PREFIX@/lib"
\tcp interpreter.py "$(DESTDIR)@PREFIX@/lib/"
\tphase install
\tinstall -m 755 python "$(DESTDIR)@PREFIX@/bin/python3.13t"
"""
# Notes each phase, and holds the run in the one that the test asks for.
PHASE = """#!/bin/sh
echo "$1" >>"$TOY/phases"
case $TOY_HOLD in "$1") exec sleep 600;; esac
"""
# Passes for a compiler of a machine that lacks nothing.
COMPILER = """#!/bin/sh
case $1 in --version) echo "toy 1.0";; -dumpmachine) echo toy-linux;; *) cat >/dev/null;; esac
"""


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code (negative: by that signal), and what it said."""

    code: int
    out: str
    err: str


@dataclass
class Toy:
    """The checkout ``root`` and the ``cache`` it uses; ``variables`` are set for every run besides the caller's."""

    root: Path
    cache: Path
    variables: dict[str, str] = field(default_factory=dict)

    def start(
        self,
        *words: str,
        user: int | None = None,
        limit: int | None = None,
        nohup: bool = False,
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Begin a run of the toolchain with ``words`` (default ``build-ft``): as another ``user``, with a ``limit`` on
        the size of its files in bytes, or with SIGHUP ignored."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("FTNUMPY_", "TOY"))}
        environment |= {
            "PATH": f"{self.root / 'tools'}:{environment['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TOY": str(self.root),
            "FTNUMPY_CACHE": str(self.cache),
            "FTNUMPY_SOURCES": str(self.root / "sources"),
        }
        prefix = [] if limit is None else ["prlimit", f"--fsize={limit}"]
        prefix += ["env", "--ignore-signal=HUP"] if nohup else []
        return subprocess.Popen(
            [*prefix, sys.executable, HERE / "driver.py", self.root, *(words or ("build-ft",))],
            env=environment | self.variables | variables,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )

    def run(self, *words: str, user: int | None = None, **variables: str) -> Ended:
        return end(self.start(*words, user=user, **variables))

    def killed_at(self, phase: str, number: signal.Signals, **variables: str) -> Ended:
        """A run that was held in ``phase`` and there got the signal; Ctrl-C is for it and not for its children, which
        stand in groups of their own."""
        (self.root / "phases").write_text("")
        run = self.start(TOY_HOLD=phase, **variables)
        self.wait_for(phase, run)
        run.send_signal(number)
        return end(run)

    def wait_for(self, phase: str, run: subprocess.Popen[str]) -> None:
        until(lambda: phase in self.phases(), f"the run never came to {phase!r}", run)

    def phases(self) -> list[str]:
        """What the run or runs have come to, in order."""
        file = self.root / "phases"
        return file.read_text().splitlines() if file.exists() else []

    def assert_whole(self) -> None:
        """Everything that a run is to make is there, whole, and nothing else is."""
        builds = sorted(self.cache.joinpath("builds").iterdir())
        assert [build.name.split("-")[0] for build in builds] == ["cpython", "numpy", "packages"]
        for build, inside in zip(builds, ("bin/python3.13t", "*.whl", "*.whl"), strict=True):
            assert list(build.glob(inside)), f"{build} has no {inside}"
            assert (build / "build.json").is_file()
        assert names(self.cache / "work") == []
        assert [name for name in names(self.cache / "archives") if not name.endswith(".lock")] == [CPYTHON, NUMPY]
        for name in (CPYTHON, NUMPY):
            assert sha256(self.cache / "archives" / name) == sha256(self.root / "sources" / name)
        made = self.root / ".build" / "patched"
        site = made / "lib" / "python3.13t" / "site-packages"
        assert names(site) == ["numpy", "numpy-2.4.6+toy1.dist-info"]
        assert (site / "numpy" / "core.so").stat().st_size == 100_000
        assert names(made) == ["bin", "ftnumpy.json", "lib"]
        (wheel,) = (self.root / "wheelhouse").iterdir()
        assert wheel.read_bytes() == next(builds[1].glob("*.whl")).read_bytes()


def end(run: subprocess.Popen[str]) -> Ended:
    try:
        out, err = run.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        raise AssertionError(f"the run hangs; so far it said {run.communicate()}") from None
    return Ended(run.returncode, out, err)


def until(true: Callable[[], bool], complaint: str, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if run.poll() is not None:
            raise AssertionError(f"{complaint}; it ended with {end(run)}")
        assert time.monotonic() < deadline, complaint
        time.sleep(0.01)


def alive(toy: Toy) -> list[str]:
    """The programs that belong to runs on ``toy``, after a second for those that are being ended."""
    mark = f"TOY={toy.root}\0".encode()
    deadline = time.monotonic() + 1
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in process.joinpath("environ").read_bytes():
                    found.append(process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode())
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make(root: Path, cache: Path) -> Toy:
    """A new toy checkout in ``root``, with a patch in each queue."""
    (root / "sources").mkdir(parents=True)
    interpreter = (HERE / "toy_interpreter.py").read_bytes()
    cpython = {"configure": CONFIGURE.encode(), "Makefile.in": MAKEFILE.encode(), "interpreter.py": interpreter}
    numpy = {"pyproject.toml": b'[project]\nversion = "2.4.6"\n', "numpy/__init__.py": b"# toy\n"}
    # Large enough to be interrupted in the middle of its transfer.
    cpython["ballast"] = os.urandom(400_000)
    for name, files in ((CPYTHON, cpython), (NUMPY, numpy)):
        write_archive(root / "sources" / name, files)
    write_queue(root / "cpython-patches", root / "sources" / CPYTHON)
    write_queue(root / "patches", root / "sources" / NUMPY)
    write_stack(root)
    write_tools(root / "tools")
    return Toy(root, cache)


def write_archive(file: Path, files: Mapping[str, bytes], made: int = RELEASED) -> None:
    with tarfile.open(file, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{file.name.removesuffix('.tar.gz')}/{name}")
            info.size, info.mtime = len(data), made
            info.mode = 0o755 if data.startswith(b"#!/bin/sh") else 0o644
            tar.addfile(info, io.BytesIO(data))


def write_queue(folder: Path, archive: Path) -> None:
    """A queue of one patch, which adds a file."""
    tree = folder.with_name("tree-to-patch")
    patchqueue.make_tree(archive, (), tree)
    (tree / "NEWS").write_text("changed by the toy queue\n")
    git(tree, "add", "NEWS")
    author = {"GIT_AUTHOR_NAME": "toy", "GIT_AUTHOR_EMAIL": "toy@localhost", "GIT_AUTHOR_DATE": f"@{RELEASED} +0000"}
    git(tree, "commit", "--quiet", "--message", "Add news\n\nWhy: a queue is not empty.", environment=author)
    folder.mkdir()
    ((name, content),) = patchqueue.format_patches(tree).items()
    (folder / name).write_bytes(content)
    (folder / "series").write_text(f"{name}\n")
    shutil.rmtree(tree)


def write_stack(root: Path, channels: Sequence[str] = ("cache", "folder"), url: str = "http://127.0.0.1:1") -> None:
    """Our own ``stack.toml``, but for the archives in ``sources`` as they are now; ``url`` is where they are served."""

    def releases(version: str, name: str) -> list[dict[str, object]]:
        file = root / "sources" / name
        size = file.stat().st_size
        return [{"version": version, "archive": name, "size": size, "sha256": sha256(file), "url": f"{url}/{name}"}]

    data = tomllib.loads((ROOT / "stack.toml").read_text(encoding="utf-8"))
    series = data["series"][data["default-series"]]
    series |= {"local-version": "toy1", "channels": list(channels)}
    series["cpython"] |= {"releases": releases("3.13.15", CPYTHON), "options": {"configure": []}}
    series["numpy"] |= {"releases": releases("2.4.6", NUMPY), "options": {"requires": ["toy-tool==1.0"], "meson": []}}
    lines = {"default-series": "toy", "series": {"toy": series}}.items()
    (root / "stack.toml").write_text("".join(f"{key} = {toml(value)}\n" for key, value in lines), encoding="utf-8")


def toml(value: object) -> str:
    """``value`` as TOML writes it on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def write_tools(folder: Path) -> None:
    """The programs that come first on the runs' PATH."""
    folder.mkdir()
    for name, text in {
        "phase": PHASE,
        "gcc": COMPILER,
        "g++": COMPILER,
        "pkg-config": "#!/bin/sh\necho 1.0\n",
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
