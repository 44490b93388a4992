"""What runs in the counted interpreter, here without a census."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ftnumpy.census
from ftnumpy.census import runner
from ftnumpy.census.guest import launch
from ftnumpy.census.workloads import NAMED, select
from ftnumpy.errors import UsageError
from ftnumpy.settings import ROOT, Settings


@pytest.mark.parametrize("census", [False, True])
def test_a_window_lets_results_and_errors_through(census: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FTNUMPY_CENSUS", raising=False)
    if census:
        monkeypatch.setenv("FTNUMPY_CENSUS", "1")
    with ftnumpy.census.window():
        pass
    with pytest.raises(ZeroDivisionError), ftnumpy.census.window():
        1 / 0  # noqa: B018


def test_the_marks_are_the_plugin_s() -> None:
    text = (ROOT / "ftnumpy" / "census" / "plugin" / "census.c").read_text(encoding="utf-8")
    assert f"CENSUS_MARK UINT64_C({launch.MARK:#018x})" in text
    assert launch.MARK == ftnumpy.census._MARK
    for number, name in enumerate(("BEGIN", "END", "DUMP", "FINISH"), start=1):
        assert f"MARK_{name} = {number}" in text
        assert getattr(launch, name) == number


def workers(*workloads: dict[str, object]) -> launch.Worker:
    locks = threading.Lock(), threading.Lock()
    for lock in locks:
        lock.acquire()
    return launch.Worker([{"name": "w", "warm_up": 2, "iterations": 5} | each for each in workloads], *locks)


def turn(worker: launch.Worker, *action: object) -> None:
    worker.action = action
    worker.before.release()
    assert worker.outcome.acquire(timeout=10)


def test_a_worker_warms_up_and_counts_with_its_own_state() -> None:
    several = [workers({"setup": "seen = []", "statement": "seen.append(i)\nseen.append(-i)"}) for _ in range(2)]
    for worker in several:
        worker.start()
        for action in (("set up", 0), ("warm up", 0), ("count", 0)):
            turn(worker, *action)
        assert worker.namespaces[0]["seen"] == [0, 0] * 2 + [0, 0, 1, -1] + [0, 0, 1, -1, 2, -2, 3, -3, 4, -4]
        assert "_loop" not in worker.namespaces[0]
    for worker in several:
        turn(worker, "end")
        worker.join(timeout=10)
        assert not worker.is_alive()


def test_a_statement_that_fails_is_told_and_the_worker_ends() -> None:
    worker = workers({"setup": "", "statement": "undefined"})
    worker.start()
    turn(worker, "set up", 0)
    turn(worker, "warm up", 0)
    assert isinstance(worker.error, NameError)
    turn(worker, "end")
    worker.join(timeout=10)
    assert not worker.is_alive()


def run(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    """``program`` by launch.py, in this Python and without QEMU: it fails at its dump."""
    (tmp_path / "p.py").write_text(program, encoding="utf-8")
    (tmp_path / "beside.py").write_text("word = 'beside'", encoding="utf-8")
    job = {"program": [str(tmp_path / "p.py"), "x", "y"], "out": str(tmp_path / "dump"), "workloads": [], "threads": 1}
    (tmp_path / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return subprocess.run(
        [sys.executable, runner.GUEST, tmp_path / "job.json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def test_a_program_runs_as_if_started_by_itself(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "import sys, beside, __main__\n"
        "def f(): return beside.word\n"
        "print(__name__, __file__.rsplit('/')[-1], sys.argv[1:], f(), __main__.f is f)\n",
    )
    assert done.stdout == "__main__ p.py ['x', 'y'] beside True\n"


def test_a_program_s_exit_status_is_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "raise SystemExit(3)").returncode == 3
    assert run(tmp_path, "1 / 0").returncode == 1


def test_names_select_workloads_and_none_selects_all() -> None:
    assert select([]) == NAMED
    assert [workload.name for workload in select(["zeros", "sin"])] == ["zeros", "sin"]
    assert len({workload.name for workload in NAMED}) == len(NAMED) >= 25
    with pytest.raises(UsageError, match=r"no workload 'sine'; the workloads are kernel-10, "):
        select(["sine"])


@pytest.mark.parametrize(("threads", "iterations"), [(0, None), (65, None), (2, 0)])
def test_numbers_that_cant_be_meant_are_refused(
    settings: Settings, tmp_path: Path, threads: int, iterations: int | None
) -> None:
    with pytest.raises(UsageError, match="can't be meant"):
        runner.take(
            NAMED,
            [],
            python=Path(sys.executable),
            variant="stock",
            threads=threads,
            iterations=iterations,
            trace=0,
            settings=settings,
            folder=tmp_path,
            log=tmp_path / "log",
        )
