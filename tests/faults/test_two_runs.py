"""Two runs at once, on one checkout or on two that share a cache: each thing is made once, and both end well."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import toy as toys
from toy import Toy


def test_on_one_checkout(toy: Toy) -> None:
    ended = [toys.end(run) for run in [toy.start(), toy.start()]]
    assert [each.code for each in ended] == [0, 0], ended
    assert toy.phases().count("compile") == toy.phases().count("wheel") == toy.phases().count("venv patched") == 1
    toy.assert_whole()


def test_on_two_checkouts(toy: Toy, tmp_path: Path) -> None:
    shutil.copytree(toy.root, tmp_path / "other")
    other = Toy(tmp_path / "other", toy.cache)
    ended = [toys.end(run) for run in [toy.start(), other.start()]]
    assert [each.code for each in ended] == [0, 0], ended
    assert [*toy.phases(), *other.phases()].count("compile") == 1
    toy.assert_whole()
    other.assert_whole()


def test_one_waits_and_takes_over_when_the_other_is_killed(toy: Toy) -> None:
    for phase in ("shutil.copyfile:Python-3.13", "compile", "download", "wheel", "pip patched", "os.rename:wheelhouse"):
        (toy.root / "phases").write_text("")
        first = toy.start(TOY_HOLD=phase)
        toy.wait_for(phase, first)
        second = toy.start()
        assert second.stdout is not None
        for line in second.stdout:
            if "waiting for another run" in line:
                break
        else:
            raise AssertionError(f"{phase}: the second did not wait; {toys.end(second)}")
        first.send_signal(signal.SIGKILL)
        toys.end(first)
        ended = toys.end(second)
        assert ended.code == 0, f"{phase}: {ended}"
        toy.assert_whole()
        for folder in (toy.cache, toy.root / ".build", toy.root / "wheelhouse"):
            shutil.rmtree(folder)
