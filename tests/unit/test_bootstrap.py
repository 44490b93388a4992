"""The toolchain's own environment: made once, whole or made again, by one run at a time."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftnumpy import bootstrap
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import ROOT

PROJECT = b"""
[project]
dependencies = ["one>=1"]
[dependency-groups]
dev = ["two==2"]
"""

# Makes the environment as nox's Python would, with a maker that takes a while and notes each call.
RUN = """
import sys, time
from pathlib import Path
from ftnumpy import bootstrap

root = Path(sys.argv[1])

def make(folder, python, requires):
    with (root / "made").open("a") as notes:
        notes.write(f"{requires}\\n")
    python.parent.mkdir(parents=True)
    time.sleep(0.5)
    python.touch()
    for name in ("one", "two"):
        info = folder / "lib" / "python3" / "site-packages" / f"{name}-3.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").touch()

bootstrap._make = make
print(bootstrap.toolchain_python(root).exists())
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_bytes(PROJECT)
    monkeypatch.setenv("FTNUMPY_CACHE", str(tmp_path / "cache"))
    return tmp_path


def packages(folder: Path) -> Path:
    return folder / "lib" / "python3" / "site-packages"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each making was asked to install."""
    calls: list[list[str]] = []

    def make(folder: Path, python: Path, requires: list[str]) -> None:
        assert not folder.exists()
        python.parent.mkdir(parents=True)
        python.touch()
        for name in ("one", "two"):
            info = packages(folder) / f"{name}-3.dist-info"
            info.mkdir(parents=True)
            (info / "RECORD").touch()
        calls.append(requires)

    monkeypatch.setattr(bootstrap, "_make", make)
    return calls


def test_it_is_made_once_with_all_requirements(root: Path, made: list[list[str]]) -> None:
    first = bootstrap.toolchain_python(root)
    assert bootstrap.toolchain_python(root) == first
    assert made == [["one>=1", "two==2"]]


def test_a_change_of_pyproject_makes_another(root: Path, made: list[list[str]]) -> None:
    first = bootstrap.toolchain_python(root)
    (root / "pyproject.toml").write_bytes(PROJECT.replace(b"two==2", b"two==3"))
    assert bootstrap.toolchain_python(root) != first
    assert made[1] == ["one>=1", "two==3"]


def test_a_half_made_one_is_made_again(root: Path, made: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(folder: Path, python: Path, requires: list[str]) -> None:
        python.parent.mkdir(parents=True)
        python.touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "_make", stop)
        with pytest.raises(KeyboardInterrupt):
            bootstrap.toolchain_python(root)
    bootstrap.toolchain_python(root)
    assert len(made) == 1


def test_one_whose_python_is_gone_is_made_again(root: Path, made: list[list[str]]) -> None:
    python = bootstrap.toolchain_python(root)
    python.unlink()
    python.symlink_to(root / "removed")
    assert bootstrap.toolchain_python(root).exists()
    assert len(made) == 2


def test_one_that_lost_a_package_is_made_again(
    root: Path, made: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    python = bootstrap.toolchain_python(root)
    shutil.rmtree(packages(python.parent.parent) / "two-3.dist-info")
    bootstrap.toolchain_python(root)
    assert len(made) == 2
    assert "can't be used (two is missing)" in capsys.readouterr().out


def test_offline_no_index_is_asked(root: Path, made: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTNUMPY_OFFLINE", "1")
    bootstrap.toolchain_python(root)
    assert made == [["--no-index", "one>=1", "two==2"]]


def test_a_cache_that_is_no_folder_is_one_clear_error(root: Path, made: list[list[str]]) -> None:
    (root / "cache").write_text("in the way")
    with pytest.raises(PrerequisiteError, match=r"(?s)Not a directory.*set FTNUMPY_CACHE"):
        bootstrap.toolchain_python(root)


# As bootstrap does it, but is killed while pip still writes.
KILLED = """
import os, subprocess, sys, threading, time
from pathlib import Path
from ftnumpy import bootstrap

root = Path(sys.argv[1])

def make(folder, python, requires):
    threading.Timer(0.5, os.kill, (os.getpid(), 9)).start()
    bootstrap._run([sys.executable, "-c", f"import time; time.sleep(2); open({str(root / 'late')!r}, 'w')"])

bootstrap._make = make
bootstrap.toolchain_python(root)
"""


def test_the_next_run_waits_for_the_pip_of_a_killed_one(
    root: Path, made: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", KILLED, str(root)], env=environment).returncode == -9
    assert not (root / "late").exists()
    bootstrap.toolchain_python(root)
    assert (root / "late").exists(), "made while the other still wrote"
    assert "waiting for another run" in capsys.readouterr().out


def test_of_two_runs_one_makes_it(root: Path) -> None:
    command = [sys.executable, "-c", RUN, str(root)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    outputs = [run.communicate(timeout=30)[0] for run in runs]
    assert all(output.endswith("True\n") for output in outputs)
    assert (root / "made").read_text().count("\n") == 1


def test_a_python_with_neither_virtualenv_nor_ensurepip_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PrerequisiteError, match="python3-venv on Debian"):
        bootstrap.toolchain_python(root)


def test_a_failing_command_shows_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no such thing"):
        bootstrap._run([sys.executable, "-c", "import sys; sys.exit('no such thing')"])


def test_it_needs_nothing_but_the_standard_library() -> None:
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import ftnumpy.bootstrap"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.returncode == 0, loaded.stderr
