"""What lies in the cache or the checkout and isn't what a run left there: it is made anew, or named."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from toy import CPYTHON, Toy

Harm = Callable[[Path], object]


@pytest.fixture
def built(toy: Toy) -> Toy:
    assert toy.run().code == 0
    return toy


def build(toy: Toy, kind: str) -> Path:
    return next(toy.cache.joinpath("builds").glob(f"{kind}-*"))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    """Another byte in the middle; the size stays."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def test_an_archive(toy: Toy) -> None:
    harms: list[Harm] = [cut, flip, lambda file: file.write_bytes(b"")]
    for number, harm in enumerate(harms):
        toy.killed_at("compile", signal.SIGKILL)
        harm(toy.cache / "archives" / CPYTHON)
        ended = toy.killed_at("compile", signal.SIGTERM)
        assert "it was removed and is fetched anew" in ended.err.replace("\n", " "), f"{number}: {ended}"
    assert toy.run().code == 0
    toy.assert_whole()


def test_an_archive_where_archives_come_from(toy: Toy) -> None:
    flip(toy.root / "sources" / CPYTHON)
    ended = toy.run()
    assert ended.code == 3 and "is not the pinned archive" in ended.err
    assert not (toy.cache / "archives" / CPYTHON).exists()


def test_a_build(built: Toy) -> None:
    harms: list[tuple[str, Harm]] = [
        ("cpython", lambda folder: (folder / "lib" / "interpreter.py").unlink()),
        ("cpython", lambda folder: cut(folder / "lib" / "interpreter.py")),
        ("cpython", lambda folder: shutil.rmtree(folder / "bin")),
        ("cpython", lambda folder: (folder / "build.json").unlink()),
        ("numpy", lambda folder: cut(next(folder.glob("*.whl")))),
        ("numpy", lambda folder: next(folder.glob("*.whl")).unlink()),
    ]
    for number, (kind, harm) in enumerate(harms):
        harm(build(built, kind))
        ended = built.run()
        assert ended.code == 0, f"{number}: {ended}"
        assert "was damaged" in ended.err and "made" in ended.out, f"{number}: {ended}"
        built.assert_whole()
    assert built.run().err == ""


def test_the_packages_that_build_numpy(toy: Toy) -> None:
    toy.killed_at("wheel", signal.SIGKILL)
    cut(next(build(toy, "packages").glob("*.whl")))
    ended = toy.run()
    assert ended.code == 0 and "was damaged" in ended.err
    toy.assert_whole()


def test_an_environment(built: Toy) -> None:
    harms: list[Harm] = [
        lambda folder: next(folder.glob("lib/*/site-packages/numpy/core.so")).unlink(),
        lambda folder: cut(next(folder.glob("lib/*/site-packages/numpy/core.so"))),
        lambda folder: [shutil.rmtree(each) for each in folder.glob("lib/*/site-packages/numpy*")],
        lambda folder: (folder / "bin" / "python").unlink(),
        lambda folder: (folder / "ftnumpy.json").write_text('{"folder": '),
        lambda folder: (folder / "ftnumpy.json").write_bytes(b"\xff\xfe"),
        lambda folder: (folder / "ftnumpy.json").write_text("[]"),
        lambda folder: (folder / "ftnumpy.json").unlink(),
        shutil.rmtree,
    ]
    for number, harm in enumerate(harms):
        harm(built.root / ".build" / "patched")
        ended = built.run()
        assert ended.code == 0, f"{number}: {ended}"
        built.assert_whole()


def test_the_wheelhouse(built: Toy) -> None:
    (wheel,) = (built.root / "wheelhouse").iterdir()
    cut(wheel)
    (built.root / "wheelhouse" / f".{wheel.name}.part").write_text("half")
    assert built.run().code == 0
    built.assert_whole()


@pytest.mark.parametrize("place", ["builds", "work", "archives", "locks", "logs"])
def test_a_file_where_a_folder_of_the_cache_is_to_be(toy: Toy, place: str) -> None:
    toy.cache.mkdir()
    (toy.cache / place).write_text("in the way")
    ended = toy.run()
    assert ended.code in (1, 3), ended
    assert str(toy.cache / place) in ended.err.replace("\n", "") and "Traceback" not in ended.err
    (toy.cache / place).unlink()
    assert toy.run().code == 0
    toy.assert_whole()


def test_a_folder_where_the_marker_is_to_be(built: Toy) -> None:
    marker = built.root / ".build" / "patched" / "ftnumpy.json"
    marker.unlink()
    marker.mkdir()
    ended = built.run()
    assert ended.code == 1 and "Is a directory" in ended.err and "ftnumpy.json" in ended.err.replace("\n", "")


def test_a_finished_build_keeps_what_it_was_made_of(built: Toy) -> None:
    """The list that damage is found by is complete: every file but the list itself."""
    folder = build(built, "cpython")
    listed = json.loads((folder / "files.json").read_text())
    there = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert set(listed) == there - {"files.json"}
