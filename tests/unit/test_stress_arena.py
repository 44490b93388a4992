"""The arena, in the Python that runs this: its rounds and samples, and that what a kind does wrong is seen.

What leaks here leaks in a kind of stress as `ftnumpy.stress` runs it, and is judged as there.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ftnumpy.settings import ROOT
from ftnumpy.stress import level, samples

KIND = """
import sys
sys.path.insert(0, {stress!r})
import os, threading, time
import arena

kept = []
class Leaked: pass

def work(number, chance):
    time.sleep(0.01)
    {fault}
    return 1

def stress(run):
    ops = 0
    for round in run.rounds(least={rounds}):
        ops += round.fight(work, 2)
    return ops

arena.main(stress)
"""

NO_FAULT = "pass"


def run(folder: Path, fault: str, rounds: int) -> tuple[subprocess.CompletedProcess[str], Path]:
    kind, kept = folder / "kind.py", folder / "kind.jsonl"
    kind.write_text(KIND.format(stress=str(ROOT / "tests" / "stress"), fault=fault, rounds=rounds))
    # So little time that the number of rounds is the same however busy the machine is.
    command = [sys.executable, str(kind), "--seconds", "0.001", "--seed", "5", "--samples", str(kept)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False), kept


def test_a_good_kind_reports_and_is_level(tmp_path: Path) -> None:
    done, kept = run(tmp_path, NO_FAULT, 40)
    assert done.returncode == 0, done.stderr
    taken = samples.load(kept)
    assert json.loads(done.stdout.splitlines()[-1])["ops"] >= 2 * len(taken)
    assert all(one.seconds < other.seconds for one, other in itertools.pairwise(taken))
    found = level.levels(taken)
    assert found and not any(each.grew for each in found)


@pytest.mark.parametrize(
    ("fault", "measure"),
    [
        ("kept.append(os.open(os.devnull, os.O_RDONLY))", "descriptors"),
        ("kept.extend(Leaked() for _ in range(20))", "objects: Leaked"),
        ("kept.extend([str(time.monotonic() + i) for i in range(400)])", "blocks"),
        ("kept.append(bytearray(b'x' * (8 << 20)))", "resident"),
        ("arena.LEAVING = 0.01; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "threads"),
    ],
)
def test_a_leak_is_seen(tmp_path: Path, fault: str, measure: str) -> None:
    done, kept = run(tmp_path, fault, 40)
    assert done.returncode == 0, done.stderr
    assert measure in [each.measure for each in level.levels(samples.load(kept)) if each.grew]


def test_a_wrong_result_is_seen_with_its_place(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "assert number == 0 or chance.randrange(3), 'a sum is wrong'", 40)
    assert done.returncode == 1
    assert "AssertionError: a sum is wrong\nin thread 1 of 2, round " in done.stderr and ", seed 5" in done.stderr


def test_the_seed_decides(tmp_path: Path) -> None:
    fault = "sys.stdout.write(f'{number} {[chance.randrange(100) for _ in range(5)]}\\n')"
    first, again = (run(tmp_path, fault, 1)[0].stdout.splitlines()[:-1] for _ in range(2))
    assert len(set(first)) == 2 and sorted(first) == sorted(again)


def test_a_run_that_did_nothing_fails(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "return 0", 1)
    assert done.returncode == 1 and "nothing was done" in done.stderr
