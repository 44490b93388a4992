"""Missing system packages: found before a build, with one line that installs them."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import prerequisites
from ftnumpy.errors import PrerequisiteError
from ftnumpy.prerequisites import MANAGERS, NEEDS, Finding, advice, advice_for_modules, check, require
from ftnumpy.settings import Settings


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def command(folder: Path, name: str, script: str = "exit 0") -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def need(name: str) -> prerequisites.Need:
    return next(need for need in NEEDS if need.name.startswith(name))


def test_a_bare_machine_is_told_everything_in_one_line(
    bin_folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(bin_folder, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PrerequisiteError) as raised:
        require(settings)
    *_, line = str(raised.value).splitlines()
    assert line.startswith("To install it: sudo apt-get install -y git make gcc libc6-dev g++ pkg-config ")
    for package in ("zlib1g-dev", "libssl-dev", "libffi-dev", "liblzma-dev", "libbz2-dev", "libsqlite3-dev"):
        assert package in line.split()
    assert "libgdbm-dev" not in line, "an optional package is not needed"
    for name in ("git", "zlib", "C++17 compiler"):
        assert f"\n  {name} (" in str(raised.value)


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "apt-get install -y zlib1g-dev"),
        ("dnf", "dnf install -y zlib-devel"),
        ("pacman", "pacman -S --needed zlib"),
        ("zypper", "zypper install -y zlib-devel"),
        ("apk", "apk add zlib-dev"),
    ],
)
def test_each_package_manager_gets_its_names(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch, manager: str, line: str
) -> None:
    command(bin_folder, manager)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert advice([need("zlib")]) == f"To install it: {line}"


def test_an_unknown_system_is_told_what_we_know(bin_folder: Path) -> None:
    assert "No package manager that we know" in advice([need("zlib")])


def test_every_need_can_be_looked_for_and_installed_everywhere() -> None:
    for each in NEEDS:
        assert len(each.packages) == len(MANAGERS)
        assert (each.command is None) != (each.source is None), each.name
    modules = {each.module for each in NEEDS if not each.optional}
    assert {"ssl", "zlib", "ctypes", "lzma", "bz2", "sqlite3"} <= modules


def test_a_missing_header_is_missing_and_a_present_one_tells_its_version(settings: Settings) -> None:
    if shutil.which(settings.cc) is None:
        pytest.fail(f"{settings.cc} is not on PATH; the toolchain's own tests need a C compiler")
    here = replace(need("zlib"), source='#define THERE "1" "." "2"\nVERSION THERE\n')
    absent = replace(need("zlib"), source="#include <ftnumpy/no/such/header.h>\n")
    old = replace(need("zlib"), source="#if 1 < 2\n#error too old\n#endif\n")
    assert check(settings, [here, absent, old]) == [
        Finding(here, True, "1.2"),
        Finding(absent, False, ""),
        Finding(old, False, ""),
    ]


def test_a_command_is_found_on_path_with_its_version(bin_folder: Path, settings: Settings) -> None:
    command(bin_folder, "git", "echo git version 2.39.5 '(made up)'")
    assert check(settings, [need("git"), need("make")]) == [
        Finding(need("git"), True, "2.39.5"),
        Finding(need("make"), False, ""),
    ]


def test_what_lacks_after_a_build_names_its_package(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(bin_folder, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert advice_for_modules(["sqlite3"]).endswith("apt-get install -y libsqlite3-dev")
    assert advice_for_modules(["pip"]).endswith("apt-get install -y zlib1g-dev libssl-dev")


def test_the_list_for_scripts(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(bin_folder, "dnf")
    monkeypatch.setattr(sys, "argv", ["prerequisites"])
    monkeypatch.delenv("CC", raising=False)
    prerequisites.main()
    words = capsys.readouterr().out.split()
    assert words[:3] == ["git", "make", "gcc"]
    assert "gdbm-devel" in words and words.count("gcc") == 1
