from __future__ import annotations

import os
from pathlib import Path

import pytest

from ftnumpy.errors import UsageError
from ftnumpy.settings import read_settings


def test_cache_is_the_named_one_then_xdg_then_home(tmp_path):
    both = {"FTNUMPY_CACHE": str(tmp_path / "own"), "XDG_CACHE_HOME": "/xdg"}
    assert read_settings(both).cache == tmp_path / "own"
    assert read_settings({"XDG_CACHE_HOME": "/xdg"}).cache == Path("/xdg/ftnumpy")
    assert read_settings({}).cache == Path.home() / ".cache/ftnumpy"


def test_relative_and_home_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    settings = read_settings({"FTNUMPY_CACHE": "here", "FTNUMPY_SOURCES": "mine"})
    assert settings.cache == tmp_path / "here"
    assert settings.sources == tmp_path / "mine"
    assert read_settings({"FTNUMPY_CACHE": "~/c"}).cache == Path.home() / "c"


def test_folders_of_the_cache_do_not_overlap(settings):
    folders = {settings.archives, settings.builds, settings.work, settings.logs}
    assert len(folders) == 4
    assert {folder.parent for folder in folders} == {settings.cache}


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("0", False), ("", False), (None, False)])
def test_offline(value, offline):
    environ = {} if value is None else {"FTNUMPY_OFFLINE": value}
    assert read_settings(environ).offline is offline


def test_jobs():
    assert read_settings({"FTNUMPY_JOBS": "3"}).jobs == 3
    assert read_settings({}).jobs == os.cpu_count()


def test_compilers(tmp_path):
    settings = read_settings({"PATH": str(tmp_path)})
    assert (settings.cc, settings.cxx, settings.ccache) == ("gcc", "g++", None)
    ccache = tmp_path / "ccache"
    ccache.touch(mode=0o755)
    settings = read_settings({"PATH": str(tmp_path), "CC": "clang", "CXX": "clang++"})
    assert (settings.cc, settings.cxx, settings.ccache) == ("clang", "clang++", str(ccache))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FTNUMPY_JOBS", "0"),
        ("FTNUMPY_JOBS", "-1"),
        ("FTNUMPY_JOBS", "two"),
        ("FTNUMPY_JOBS", "²"),
        ("FTNUMPY_OFFLINE", "yes"),
        ("FTNUMPY_SOURCES", "/no/such/folder"),
    ],
)
def test_values_that_cannot_be_meant_name_the_variable(name, value):
    with pytest.raises(UsageError, match=name) as caught:
        read_settings({name: value})
    assert value in str(caught.value)


def test_environment_is_not_read_behind_the_callers_back(monkeypatch):
    monkeypatch.setenv("FTNUMPY_OFFLINE", "1")
    monkeypatch.setenv("CC", "other")
    settings = read_settings({})
    assert not settings.offline
    assert settings.cc == "gcc"


def test_without_any_home_the_cache_must_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[_])
    with pytest.raises(UsageError, match=r"no home folder is known here; set FTNUMPY_CACHE"):
        read_settings({})
    assert read_settings({"FTNUMPY_CACHE": str(tmp_path)}).cache == tmp_path
