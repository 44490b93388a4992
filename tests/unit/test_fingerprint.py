"""One folder per hash: built once, whole or not there, whoever is killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ftnumpy import fingerprint
from ftnumpy.errors import BuildError
from ftnumpy.settings import ROOT, Settings

INPUTS = {"archive": "aa", "options": "-x"}

# A run of its own: builds slowly, notes each build in the file `builds`, prints when it is inside one.
RUN = """
import os, sys, time
from pathlib import Path
from ftnumpy import fingerprint
from ftnumpy.settings import read_settings

root, seconds = Path(sys.argv[1]), float(sys.argv[2])
settings = read_settings({"FTNUMPY_CACHE": str(root / "cache")}, root=root)

def build(work, final):
    with (root / "builds").open("a") as notes:
        notes.write(f"{os.getpid()}\\n")
    staged = work / "stage"
    staged.mkdir()
    (staged / "first").write_text("1")
    print("inside", flush=True)
    time.sleep(seconds)
    (staged / "second").write_text("2")
    return staged

final, fresh = fingerprint.build_once(settings, "thing", {"archive": "aa", "options": "-x"}, build)
print(final, fresh, flush=True)
"""


def start(root: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(root), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


def wait_for(run: subprocess.Popen[str], word: str) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        if line.startswith(word):
            return
    raise AssertionError(f"the run ended without saying {word!r}")


def whole(work: Path, final: Path) -> Path:
    staged = work / "deep" / "stage"
    staged.mkdir(parents=True)
    for name in ("first", "second"):
        (staged / name).write_text(name)
    return staged


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_every_name_and_value_changes_the_fingerprint() -> None:
    base = fingerprint.fingerprint(INPUTS)
    changed = [
        {**INPUTS, "archive": "ab"},
        {**INPUTS, "options": ""},
        {**INPUTS, "new": ""},
        {"archive": "aa"},
        {"archive": "-x", "options": "aa"},
    ]
    assert len({base, *map(fingerprint.fingerprint, changed)}) == 1 + len(changed)
    assert fingerprint.fingerprint(dict(reversed(INPUTS.items()))) == base


def test_a_build_is_found_again(settings: Settings) -> None:
    final, fresh = fingerprint.build_once(settings, "thing", INPUTS, whole)
    assert fresh
    assert files(final) == ["build.json", "files.json", "first", "second"]
    assert fingerprint.read_description(final)["inputs"] == INPUTS

    def unwanted(work: Path, final: Path) -> Path:
        raise AssertionError("built again")

    assert fingerprint.build_once(settings, "thing", INPUTS, unwanted) == (final, False)
    assert files(settings.work) == []


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_failed_build_leaves_nothing(settings: Settings, error: BaseException) -> None:
    def build(work: Path, final: Path) -> Path:
        whole(work, final)
        raise error

    with pytest.raises(type(error)):
        fingerprint.build_once(settings, "thing", INPUTS, build)
    assert files(settings.builds) == files(settings.work) == []
    assert fingerprint.build_once(settings, "thing", INPUTS, whole)[1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_one_clear_error(settings: Settings, number: int) -> None:
    def build(work: Path, final: Path) -> Path:
        whole(work, final)
        raise OSError(number, "No space left on device")

    with pytest.raises(BuildError, match=r"no space is left.*FTNUMPY_CACHE"):
        fingerprint.build_once(settings, "thing", INPUTS, build)
    assert files(settings.builds) == files(settings.work) == []


def test_a_disk_that_fills_at_the_last_file_leaves_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(fingerprint.json, "dumps", lambda *_, **__: full() if "indent" in __ else "x")
        with pytest.raises(BuildError, match="no space is left"):
            fingerprint.build_once(settings, "thing", INPUTS, whole)
    assert files(settings.builds) == files(settings.work) == []


def test_of_two_runs_one_builds_and_the_other_waits(tmp_path: Path) -> None:
    runs = [start(tmp_path, 0.5) for _ in range(2)]
    outputs = [run.communicate(timeout=30)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert len((tmp_path / "builds").read_text().splitlines()) == 1
    assert sorted(output.split()[-1] for output in outputs) == ["False", "True"]
    assert sum("waiting for another run" in output for output in outputs) == 1


def test_a_killed_run_is_completed_by_the_next(tmp_path: Path, settings: Settings) -> None:
    killed = start(tmp_path, 60)
    wait_for(killed, "inside")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    orphan = next(settings.work.iterdir())
    assert files(settings.builds) == []

    seen: list[Path] = []

    def build(work: Path, final: Path) -> Path:
        seen.append(work)
        assert not orphan.exists(), "the killed run's folder is still there"
        # What its orphans go on writing goes to their own folder.
        orphan.mkdir()
        (orphan / "late").write_text("late")
        return whole(work, final)

    final, fresh = fingerprint.build_once(settings, "thing", INPUTS, build)
    assert fresh and seen != [orphan]
    assert files(final) == ["build.json", "files.json", "first", "second"]


def test_another_hash_clears_what_a_killed_run_left_but_nothing_in_use(tmp_path: Path, settings: Settings) -> None:
    killed = start(tmp_path, 60)
    wait_for(killed, "inside")
    fingerprint.build_once(settings, "other", INPUTS, whole)
    assert len(files(settings.work)) == 1, "a running build lost its folder"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (settings.work / "patches-check-abc").mkdir()
    fingerprint.build_once(settings, "third", INPUTS, whole)
    assert files(settings.work) == ["patches-check-abc"]


def test_finding_a_build_takes_no_lock(tmp_path: Path, settings: Settings) -> None:
    fingerprint.build_once(settings, "thing", INPUTS, whole)
    name = fingerprint.place(settings, "thing", INPUTS).name
    start_time = time.monotonic()
    with fingerprint.lock(settings, name):
        fingerprint.build_once(settings, "thing", INPUTS, whole)
    assert time.monotonic() - start_time < 1


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda build: (build / "first").unlink(), "first is missing"),
        (lambda build: (build / "second").write_text("2"), "second has another size"),
        (lambda build: (build / "second").write_text(""), "second has another size"),
        (lambda build: (build / "build.json").unlink(), "build.json is missing"),
        (lambda build: (build / "files.json").write_text("{"), "files.json can't be read"),
        (lambda build: (build / "files.json").write_bytes(b"\xff"), "files.json can't be read"),
        (lambda build: (build / "files.json").write_text("[]"), "files.json can't be read"),
    ],
)
def test_a_damaged_build_is_made_anew(
    settings: Settings, capsys: pytest.CaptureFixture[str], harm: Callable[[Path], object], told: str
) -> None:
    final, _ = fingerprint.build_once(settings, "thing", INPUTS, whole)
    harm(final)
    assert fingerprint.find(settings, "thing", INPUTS) is None
    assert fingerprint.build_once(settings, "thing", INPUTS, whole) == (final, True)
    assert f"was damaged ({told})" in capsys.readouterr().err.replace("\n", " ")
    assert fingerprint.find(settings, "thing", INPUTS) == final
    assert files(settings.work) == []


def test_what_users_add_is_no_damage(settings: Settings) -> None:
    def build(work: Path, final: Path) -> Path:
        staged = whole(work, final)
        (staged / "lib" / "site-packages").mkdir(parents=True)
        (staged / "lib" / "site-packages" / "pip.py").touch()
        return staged

    final, _ = fingerprint.build_once(settings, "thing", INPUTS, build)
    (final / "lib" / "site-packages" / "pip.py").write_text("a newer one")
    (final / "__pycache__").mkdir()
    (final / "third").touch()
    assert not fingerprint.build_once(settings, "thing", INPUTS, build)[1]


def test_a_build_without_a_list_of_files_is_taken_as_it_is(settings: Settings) -> None:
    final, _ = fingerprint.build_once(settings, "thing", INPUTS, whole)
    (final / "files.json").unlink()
    assert fingerprint.find(settings, "thing", INPUTS) == final
