"""A disk that fills in the middle of a run, a limit on the size of files: one clear error, and room is all it takes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy as toys
from toy import Ended, Toy

KIB = 1 << 10


def can_mount() -> bool:
    """Whether this user may mount a small disk, as root on most machines and nobody in most containers."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Gives an empty disk with so many KiB, or makes the one that is there larger or smaller."""
    if not can_mount():
        pytest.skip("a small disk is a tmpfs, which only root may mount, and not in every container; run this as root")
    folder = tmp_path / "disk"

    def resize(kibibytes: int) -> Path:
        again = ["remount,"] if folder.exists() else []
        folder.mkdir(exist_ok=True)
        options = f"{''.join(again)}size={kibibytes}k"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "toy", folder], check=True)
        return folder

    yield resize
    if folder.exists():
        subprocess.run(["umount", "--lazy", folder], check=True)


def assert_one_clear_error(ended: Ended) -> None:
    assert ended.code in (1, 3, 6), ended
    assert "Traceback" not in ended.err, ended.err
    assert ended.err.count("error: ") >= 1
    said = ended.err.lower()
    assert "no space" in said or "file too large" in said or "ended by signal 25" in said, ended.err
    assert "ftnumpy_cache" in said or "make room" in said or "free some" in said or "ulimit" in said, ended.err


# The run needs about 2.5 MB at its height.
@pytest.mark.parametrize(
    "sizes",
    [(100, 900, 1500), pytest.param(range(60, 3000, 90), marks=pytest.mark.whole)],
    ids=["three", "many"],
)
@pytest.mark.timeout(900)
def test_the_caches_disk_is_full(toy: Toy, disk: Callable[[int], Path], sizes: tuple[int, ...]) -> None:
    failed = 0
    for size in sizes:
        toy.cache = disk(size) / "cache"
        ended = toy.run()
        if ended.code == 0:
            continue
        failed += 1
        assert_one_clear_error(ended)
        assert toys.names(toy.cache / "work") == []
        for build in toys.names(toy.cache / "builds"):
            assert (toy.cache / "builds" / build / "files.json").stat().st_size > 0
    assert failed >= 2, "the disk was never full"
    disk(64 * KIB)
    ended = toy.run()
    assert ended.code == 0, ended
    toy.assert_whole()


@pytest.mark.parametrize("size", [4, 100, 220])
def test_the_checkouts_disk_is_full(tmp_path: Path, toy: Toy, disk: Callable[[int], Path], size: int) -> None:
    place = disk(64 * KIB)
    made = toys.make(place / "checkout", tmp_path / "cache")
    used = int(subprocess.run(["du", "-sk", place], capture_output=True, text=True, check=True).stdout.split()[0])
    disk(used + size)
    ended = made.run()
    assert_one_clear_error(ended)
    disk(64 * KIB)
    assert made.run().code == 0
    made.assert_whole()


@pytest.mark.parametrize("kibibytes", [16, 250])
def test_a_limit_on_the_size_of_files(toy: Toy, kibibytes: int) -> None:
    """The archive has 400 KB; NumPy's compiled module 100."""
    limited = toys.end(toy.start(limit=kibibytes * KIB))
    assert_one_clear_error(limited)
    assert toys.names(toy.cache / "work") == []
    assert toy.run().code == 0
    toy.assert_whole()
