"""Finding QEMU, and saying what to do where it can't be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ftnumpy.census import qemu
from ftnumpy.errors import CommandFailed, PrerequisiteError
from ftnumpy.settings import Settings

GOOD = """case $1 in
--version) echo "qemu-x86_64 version 7.2.22 (Debian 1:7.2)";;
--help) echo "-plugin";;
esac"""


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first folder on PATH, where programs can be put; the machine's own QEMU is not on it."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    return tmp_path / "bin"


def test_qemu_on_path_is_taken(settings: Settings, folder: Path) -> None:
    there = program(folder / "qemu-x86_64", GOOD)
    found = qemu.find(settings)
    assert (found.program, found.version) == (there, "7.2.22")


def test_a_missing_qemu_is_told_with_the_way_to_get_it(settings: Settings, folder: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"apt-get install qemu-user(.|\n)*without root: .*--fetch-qemu"):
        qemu.find(settings)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (GOOD.replace("7.2.22", "6.1.0"), "is QEMU 6.1.0; the census needs 7.2 or later"),
        (GOOD.replace("-plugin", "-cpu"), "was built without plugins"),
        ("echo nonsense", "does not say its version, but: 'nonsense'"),
        ("exit 1", "can't be run"),
    ],
)
def test_a_qemu_that_is_no_use_is_told(settings: Settings, folder: Path, script: str, message: str) -> None:
    program(folder / "qemu-x86_64", script)
    with pytest.raises(PrerequisiteError, match=message):
        qemu.find(settings)


def test_the_package_is_fetched_once_and_then_found(settings: Settings, folder: Path, tmp_path: Path) -> None:
    os.environ["PATH"] += ":/usr/bin:/bin"
    program(
        folder / "apt-get", f'echo fetched >> {tmp_path}/calls\n[ "$1 $2" = "download qemu-user" ] && : > qemu_1.deb'
    )
    package = program(tmp_path / "package", GOOD)
    program(folder / "dpkg-deb", f'mkdir -p "$3/usr/bin" && cp {package} "$3/usr/bin/qemu-x86_64"')
    first = qemu.fetch(settings, tmp_path / "log")
    assert qemu.fetch(settings, tmp_path / "log") == first
    assert (tmp_path / "calls").read_text() == "fetched\n"
    assert qemu.identify(first).version == "7.2.22"
    assert list(settings.work.iterdir()) == []


def test_a_fetch_that_fails_leaves_nothing(settings: Settings, folder: Path, tmp_path: Path) -> None:
    program(folder / "apt-get", "echo 'E: no such package' >&2; exit 100")
    program(folder / "dpkg-deb", "exit 1")
    with pytest.raises(CommandFailed, match="no such package"):
        qemu.fetch(settings, tmp_path / "log")
    assert list(settings.work.iterdir()) == []
    assert not (settings.cache / "tools").exists()


def test_a_machine_without_apt_is_told(settings: Settings, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"apt-get is missing(.|\n)*Fedora"):
        qemu.fetch(settings, tmp_path / "log")
