"""The wheel's version, and that a wheel which isn't what was asked for is no result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ftnumpy import numpy_wheel, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.errors import BuildError
from ftnumpy.patchqueue import Patch
from ftnumpy.recipe import Recipe
from ftnumpy.settings import read_settings
from ftnumpy.stack import Project, Queue, Release

NAME = "numpy-2.4.6+ft1-cp313-cp313t-manylinux_2_27_x86_64.whl"
GOOD = {
    "version": "2.4.6+ft1",
    "metadata": "2.4.6+ft1",
    "blas": "scipy-openblas",
    "lapack": "scipy-openblas",
    "gil": False,
    "dot": 1000.0,
}


@pytest.mark.parametrize(
    ("label", "patches", "version"), [("stock", 0, "1.0"), ("ft1", 2, "1.0+ft1"), ("ft1.1", 1, "1.0+ft1.1")]
)
def test_a_patched_wheel_has_a_local_version(
    release: Release, tmp_path: Path, label: str, patches: int, version: str
) -> None:
    plan = Recipe(
        project=Project(
            name="numpy",
            releases=(release,),
            queue=Queue(project="numpy", folder=tmp_path),
            requires=(),
            options=(),
            profiles={},
            builds={},
        ),
        channels=(),
        patches=(Patch(tmp_path, ""),) * patches,
        label=label,
        options=(),
        compiler="",
        more={},
    )
    assert numpy_wheel.version_of(plan, release) == version


def test_the_version_is_set_in_its_one_line(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "numpy"\nversion = "2.4.6"\n[other]\nkey = "version = 2.4.6"\n')
    generated = tmp_path / "numpy" / "version.py"
    generated.parent.mkdir()
    generated.write_text('version = "2.4.6"')
    numpy_wheel._set_version(tmp_path, "2.4.6", "2.4.6+ft1")
    assert not generated.exists(), "the release's own version.py would win"
    assert file.read_text() == ('[project]\nname = "numpy"\nversion = "2.4.6+ft1"\n[other]\nkey = "version = 2.4.6"\n')
    with pytest.raises(BuildError, match="does not have the one line"):
        numpy_wheel._set_version(tmp_path, "2.4.6", "2.4.6+ft2")


def inspect(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: Release,
    script: str,
    name: str = NAME,
    gil: bool = False,
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(venvs, "make_venv", lambda *_, **__: python)
    interpreter = Interpreter(python, tmp_path, "aa", replace(release, version="3.13.15"), "stock", False, gil)
    settings = read_settings({"FTNUMPY_CACHE": str(tmp_path / "cache")}, root=tmp_path)
    numpy_wheel.inspect(settings, interpreter, None, tmp_path / name, "2.4.6+ft1", tmp_path / "trial", tmp_path / "log")


def test_a_good_wheel_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Release) -> None:
    inspect(tmp_path, monkeypatch, release, f"echo '{json.dumps(GOOD)}'")


@pytest.mark.parametrize(
    "answer",
    [
        {"version": "2.4.6"},
        {"metadata": "2.4.6"},
        {"blas": "none"},
        {"lapack": "none"},
        {"gil": True},
        {"dot": 0.0},
    ],
)
def test_a_wrong_wheel_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Release, answer: dict[str, Any]
) -> None:
    ((name, value),) = answer.items()
    with pytest.raises(BuildError, match=f"{name} is {value!r}"):
        inspect(tmp_path, monkeypatch, release, f"echo '{json.dumps(GOOD | answer)}'")


def test_a_wheel_for_the_gil_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Release) -> None:
    with pytest.raises(BuildError, match="does not say free-threaded"):
        inspect(tmp_path, monkeypatch, release, f"echo '{json.dumps(GOOD)}'", NAME.replace("313t", "313"))


def test_a_wheel_for_the_gil_is_what_the_variant_gil_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Release
) -> None:
    answer = f"echo '{json.dumps(GOOD | {'gil': True})}'"
    inspect(tmp_path, monkeypatch, release, answer, NAME.replace("313t", "313"), gil=True)
    with pytest.raises(BuildError, match="does not say CPython with the GIL"):
        inspect(tmp_path, monkeypatch, release, answer, gil=True)


def test_a_wheel_that_cannot_be_imported_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Release
) -> None:
    with pytest.raises(BuildError, match=r"can't be imported.*\n.*libgfortran"):
        inspect(tmp_path, monkeypatch, release, "echo 'ImportError: libgfortran' >&2; exit 1")


def test_a_folder_must_have_one_wheel(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="has 0"):
        numpy_wheel.only_wheel(tmp_path)
    (tmp_path / "a.whl").touch()
    assert numpy_wheel.only_wheel(tmp_path) == tmp_path / "a.whl"
    (tmp_path / "b.whl").touch()
    with pytest.raises(BuildError, match="has 2"):
        numpy_wheel.only_wheel(tmp_path)
