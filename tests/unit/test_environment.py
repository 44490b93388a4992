"""The checkout's virtual environments: refilled exactly when something in them changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import cpython, environment, numpy_wheel, venvs, wheelhouse
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import Release, Stack, Variant, read_stack, read_variant


@pytest.fixture
def interpreter(tmp_path: Path, release: Release) -> Interpreter:
    return Interpreter(tmp_path / "python", tmp_path, "aa", release, "stock", False)


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    path = tmp_path / "numpy-1-cp313-cp313t-linux.whl"
    path.write_bytes(b"wheel")
    return Wheel(path, "1", "bb", False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each filling was asked to install."""
    calls: list[list[str]] = []

    def make_venv(
        settings: Settings, base: Path, folder: Path, requires: Sequence[str | Path], *, what: str, log: Path
    ) -> Path:
        assert not (folder / environment.MARKER).exists(), "a marker stands while the folder changes"
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
        for name in ("numpy-1", "pytest-8"):
            info = folder / "lib" / "python3.13t" / "site-packages" / f"{name}.dist-info"
            info.mkdir(parents=True, exist_ok=True)
            (info / "RECORD").touch()
        calls.append([str(each) for each in requires])
        return python

    monkeypatch.setattr(venvs, "make_venv", make_venv)
    return calls


def test_it_is_filled_once_and_again_when_an_input_changes(
    settings: Settings, interpreter: Interpreter, wheel: Wheel, made: list[list[str]], tmp_path: Path
) -> None:
    folder, log = tmp_path / ".build" / "stock", tmp_path / "log"
    assert environment.fill(settings, folder, interpreter, wheel, ("pytest",), log)
    assert not environment.fill(settings, folder, interpreter, wheel, ("pytest",), log)
    assert made == [[str(wheel.path), "pytest"]]
    assert environment.fill(settings, folder, replace(interpreter, fingerprint="ab"), wheel, ("pytest",), log)
    assert environment.fill(settings, folder, interpreter, wheel, ("pytest",), log)
    assert environment.fill(settings, folder, interpreter, replace(wheel, fingerprint="bc"), ("pytest",), log)
    assert environment.fill(settings, folder, interpreter, wheel, (), log)


def test_one_that_was_interrupted_or_broken_is_filled_again(
    settings: Settings,
    interpreter: Interpreter,
    wheel: Wheel,
    made: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, log = tmp_path / ".build" / "stock", tmp_path / "log"
    environment.fill(settings, folder, interpreter, wheel, (), log)

    def stop(*_: object, **__: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(venvs, "make_venv", stop)
        with pytest.raises(KeyboardInterrupt):
            environment.fill(settings, folder, replace(interpreter, fingerprint="ab"), wheel, (), log)
    assert environment.fill(settings, folder, interpreter, wheel, (), log), "half-changed, though named as before"
    (folder / "bin" / "python").unlink()
    assert environment.fill(settings, folder, interpreter, wheel, (), log)


def test_the_wheelhouse_gets_the_wheel_whole_or_not_at_all(
    settings: Settings, wheel: Wheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = environment.export_wheel(settings, wheel)
    assert copy == settings.root / "wheelhouse" / wheel.path.name
    assert copy.read_bytes() == b"wheel"

    def half(source: Path, target: Path) -> None:
        target.write_bytes(b"wh")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wheelhouse.shutil, "copy2", half)
    with pytest.raises(OSError, match="No space"):
        environment.export_wheel(settings, wheel)
    assert [file.name for file in copy.parent.iterdir()] == [wheel.path.name]
    assert copy.read_bytes() == b"wheel"


def test_benchmarks_of_interpreters_share_the_stock_wheel(
    settings: Settings,
    interpreter: Interpreter,
    wheel: Wheel,
    made: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[tuple[str, str]] = []

    def make_interpreter(stack: Stack, settings: Settings, variant: Variant, profile: str, log: Path) -> Interpreter:
        return replace(interpreter, tag=variant.name)

    def make_wheel(
        stack: Stack, settings: Settings, variant: Variant, profile: str, builder: Interpreter, log: Path
    ) -> Wheel:
        built.append((variant.name, builder.tag))
        return wheel

    monkeypatch.setattr(cpython, "interpreter", make_interpreter)
    monkeypatch.setattr(numpy_wheel, "wheel", make_wheel)
    here = replace(settings, root=tmp_path)
    stack = read_stack(ROOT / "stack.toml")
    for name in ("c2n0", "c2n1"):
        options = Options(variant=read_variant(name), profile="default", minutes=1, seed=0, logs=tmp_path)
        found = environment.bench_environment(stack, here, options, Summary("bench"), ("asv_runner",))
        assert found.interpreter.tag == name
    assert built == [("stock", "stock"), ("c2n1", "c2n1")]
