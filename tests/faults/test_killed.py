"""Killed, told to end, or interrupted, in every phase: nothing half-made counts, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
import toy as toys
from toy import Toy

# In the order in which a run comes to them.  With a colon: a moment in the toolchain itself (see driver.py).
PHASES = (
    "shutil.copyfile:Python-3.13",  # the archive, into the cache
    "os.rename:Python-3.13",
    "open:unpacked",
    "subprocess.Popen:'--all'",  # the release becomes a commit
    "subprocess.Popen:'am'",  # the queue is applied
    "configure",
    "compile",
    "install",
    "os.rename:builds/cpython-",  # the build becomes final
    "shutil.copyfile:numpy-2.4.6",
    "download",  # the tools that build NumPy
    "os.rename:builds/packages-",
    "venv tools",
    "pip tools",
    "wheel",
    "repair",
    "venv trial",
    "os.rename:builds/numpy-",
    "os.remove:ftnumpy.json",  # the environment is no longer what its marker says
    "venv patched",
    "pip patched",
    "os.rename:ftnumpy.json",
    "shutil.copyfile:wheelhouse",
    "os.rename:wheelhouse",
)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.whole),
        pytest.param(signal.SIGINT, marks=pytest.mark.whole),
        pytest.param(signal.SIGHUP, marks=pytest.mark.whole),
    ],
    ids=lambda number: number.name,
)
@pytest.mark.timeout(900)
def test_in_every_phase_in_turn(toy: Toy, number: signal.Signals) -> None:
    for phase in PHASES:
        ended = toy.killed_at(phase, number)
        assert toys.alive(toy) == [], f"{phase}: programs outlive the run"
        if number == signal.SIGKILL:
            assert ended.code == -signal.SIGKILL
        else:
            assert ended.code == 130, ended
            assert "the next run goes on from what is finished" in ended.err
            assert toys.names(toy.cache / "work") == [], f"{phase}: it left its work folder"
        for build in toys.names(toy.cache / "builds"):
            assert (toy.cache / "builds" / build / "files.json").exists(), f"{phase}: {build} is there and not whole"
        assert [name for name in toys.names(toy.root / "wheelhouse") if not name.startswith(".")] == []
    ended = toy.run()
    assert ended.code == 0, ended
    toy.assert_whole()


def test_what_is_finished_is_not_made_again(toy: Toy) -> None:
    toy.killed_at("wheel", signal.SIGKILL)
    before = len(toy.phases())
    assert toy.run().code == 0
    again = toy.phases()[before:]
    assert "configure" not in again and "download" not in again
    assert again.count("wheel") == 1
    toy.assert_whole()


@pytest.mark.parametrize("stride", [25, pytest.param(3, marks=pytest.mark.whole)])
@pytest.mark.timeout(900)
def test_at_changes_on_disk(toy: Toy, stride: int) -> None:
    """Killed at each ``stride``-th change or start of a program, one run after the other, until one has no more."""
    for step in range(stride, 2000, stride):
        ended = toy.run(TOY_KILL=str(step))
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended
    assert step > stride, "no run was killed"
    toy.assert_whole()


def test_an_ignored_hang_up_stays_ignored(toy: Toy) -> None:
    run = toy.start(TOY_HOLD="compile", nohup=True)
    toy.wait_for("compile", run)
    os.kill(run.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(1)
    run.send_signal(signal.SIGTERM)
    assert toys.end(run).code == 130
