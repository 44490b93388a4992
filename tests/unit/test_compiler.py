"""Which compilers these are, and an environment that can't change a build unseen."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import compiler
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import Settings


def fake(folder: Path, name: str, version: str) -> Path:
    file = folder / name
    file.write_text(f'#!/bin/sh\n[ "$1" = -dumpmachine ] && echo box-linux && exit\necho "{version}"\necho more\n')
    file.chmod(0o755)
    return file


def test_both_compilers_say_who_they_are(tmp_path: Path, settings: Settings) -> None:
    cc, cxx = fake(tmp_path, "cc", "cc 12"), fake(tmp_path, "c++", "c++ 13")
    settings = replace(settings, cc=str(cc), cxx=str(cxx))
    assert compiler.identify(settings) == f"{cc}: cc 12, box-linux; {cxx}: c++ 13, box-linux"


def test_a_compiler_that_is_not_there_is_told(settings: Settings) -> None:
    with pytest.raises(PrerequisiteError, match=r"lacks what the build needs:(.*\n)*  C compiler \(everything\)"):
        compiler.identify(replace(settings, cc="no-such-cc"))


def test_a_compiler_that_fails_is_told(tmp_path: Path, settings: Settings) -> None:
    odd = tmp_path / "odd"
    odd.write_text('#!/bin/sh\n[ "$1" != -dumpmachine ]\n')
    odd.chmod(0o755)
    with pytest.raises(PrerequisiteError, match=r"odd.*-dumpmachine"):
        compiler.identify(replace(settings, cc=str(odd)))


def test_flags_and_python_settings_of_the_shell_stay_outside(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CFLAGS", "LDFLAGS", "MAKEFLAGS", "PYTHONPATH", "PYTHON_GIL", "GIT_DIR"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SSL_CERT_FILE", "y")
    environment = compiler.environment(settings, tmp_path)
    assert not {"CFLAGS", "LDFLAGS", "MAKEFLAGS", "PYTHONPATH", "PYTHON_GIL", "GIT_DIR"} & set(environment)
    assert environment["SSL_CERT_FILE"] == "y"


def test_ccache_stands_behind_the_compilers_names_and_nowhere_else(tmp_path: Path, settings: Settings) -> None:
    ccache = fake(tmp_path, "ccache", "ccache 4")
    settings = replace(settings, cc="gcc", cxx="/opt/bin/g++", ccache=str(ccache))
    work = tmp_path / "work"
    work.mkdir()
    environment = compiler.environment(settings, work, tmp_path / "tools")
    masks, tools, *_ = environment["PATH"].split(os.pathsep)
    assert [(link.name, link.readlink()) for link in Path(masks).iterdir()] == [("gcc", ccache)]
    assert tools == str(tmp_path / "tools")
    assert (environment["CC"], environment["CXX"]) == ("gcc", "/opt/bin/g++")
    assert environment["CCACHE_BASEDIR"] == str(work)


def test_without_ccache_the_compilers_are_plain(tmp_path: Path, settings: Settings) -> None:
    environment = compiler.environment(replace(settings, ccache=None), tmp_path)
    assert environment["PATH"] == os.environ["PATH"]
    assert not {"CCACHE_BASEDIR"} & (set(environment) - set(os.environ))


def test_only_code_with_a_sanitizer_needs_its_runtime_first(settings: Settings, tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_text('#!/bin/sh\necho "/lib/${1#-print-file-name=}"\n')
    program.chmod(0o755)
    known = replace(settings, cc=str(program))
    assert [compiler.preload(known, build) for build in (None, "gil")] == [{}, {}]
    names = {build: compiler.preload(known, build)["LD_PRELOAD"] for build in ("asan", "tsan")}
    assert [Path(word).name for word in names["asan"].split()] == ["libasan.so", "libstdc++.so.6"]
    assert [Path(word).name for word in names["tsan"].split()] == ["libtsan.so"]


def test_ccache_gets_a_folder_in_the_cache_where_its_own_can_not_be_written(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "home" / "ccache"
    ccache = tmp_path / "ccache-itself"
    ccache.write_text(f"#!/bin/sh\necho {own}\n")
    ccache.chmod(0o755)
    monkeypatch.delenv("CCACHE_DIR", raising=False)
    with_ccache = replace(settings, ccache=str(ccache))
    assert "CCACHE_DIR" not in compiler.environment(with_ccache, tmp_path)
    monkeypatch.setattr(compiler.os, "access", lambda *_: False)
    assert compiler.environment(with_ccache, tmp_path)["CCACHE_DIR"] == str(settings.cache / "ccache")
