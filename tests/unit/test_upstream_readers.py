"""What upstream's test runners leave behind, read: NumPy's through our plugin, CPython's JUnit file and log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ftnumpy.errors import BuildError, UsageError
from ftnumpy.upstream import cpython_tests, numpy_tests, outcomes
from ftnumpy.upstream.outcomes import Test

TESTS = """
import faulthandler, os, pytest, threading

def test_right(): pass
def test_wrong(): assert 1 == 2
def test_skipped(): pytest.skip("no moon")
@pytest.mark.xfail(reason="known")
def test_known(): assert False
@pytest.mark.xfail(reason="known")
def test_mended(): pass
@pytest.fixture
def late():
    yield
    raise ValueError("too late")
def test_late(late): pass
def test_crash(): faulthandler._sigsegv()
def test_hang(): threading.Event().wait()
def test_after(): pass
"""

# pytest-run-parallel and the interpreter's own word about its GIL are only in the environments under test.
BESIDES = """
import sys
import pytest

sys._is_gil_enabled = lambda: True

class Parallel:
    run_in_parallel = {"test_toy.py::test_right": 4}

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.pluginmanager.register(Parallel(), "_run-parallel")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the plugin keeps of tests that end in every way there is."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "test_toy.py").write_text(TESTS)
    (folder / "besides.py").write_text(BESIDES)
    (folder / "record").mkdir()
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "besides", "-p", "ftnumpy_record", "-p", "no:cacheprovider"),
            *("-c", "/dev/null", f"--rootdir={folder}", "-n", "1", "--max-worker-restart=9", "--timeout=0"),
            *(f"--record={folder / 'record'}", "--limit=3", "test_toy.py"),
        ],
        cwd=folder,
        env={"PYTHONPATH": f"{numpy_tests.GUEST}:{folder}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=110,
        check=False,
    )
    return folder / "record"


def test_each_test_is_kept_however_it_ends(recorded: Path) -> None:
    found = numpy_tests.read(recorded)
    assert {name.removeprefix("test_toy.py::test_"): test.outcome for name, test in found.tests.items()} == {
        "right": "passed",
        "wrong": "failed",
        "skipped": "skipped",
        "known": "xfailed",
        "mended": "passed",
        "late": "failed",
        "crash": "crashed",
        "hang": "hung",
        "after": "passed",
    }


def test_what_says_why_is_kept(recorded: Path) -> None:
    why = {name.removeprefix("test_toy.py::test_"): test.why for name, test in numpy_tests.read(recorded).tests.items()}
    assert (why["right"], why["skipped"], why["known"]) == ("", "no moon", "known")
    assert "assert 1 == 2" in why["wrong"] and "too late" in why["late"]
    assert why["crash"].startswith("Fatal Python error: Segmentation fault") and "in test_crash" in why["crash"]
    assert why["hang"].startswith("Timeout (") and "in test_hang" in why["hang"], "the stacks of where it hangs"


def test_threads_and_the_gil_are_kept(recorded: Path) -> None:
    found = numpy_tests.read(recorded)
    assert found.tests["test_toy.py::test_right"].threads == 4
    assert found.tests["test_toy.py::test_wrong"].threads == 1
    assert found.gil == "test_toy.py::test_right", "the first after which it was on"


def test_a_suite_that_did_not_come_to_its_end_is_no_result(recorded: Path, tmp_path: Path) -> None:
    lines = (recorded / "reports.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == {"finished": 1}
    (tmp_path / "reports.jsonl").write_text("\n".join(lines[:-1]))
    with pytest.raises(BuildError, match="ended before its last test"):
        numpy_tests.read(tmp_path)


JUNIT = """<testsuites tests="9" errors="0" failures="1">
<testsuite>
<testcase name="test.test_good.A.test_right" status="run" result="completed" time="0.5" />
<testcase name="test.test_good.A.test_right" status="run" result="completed" time="0.25" />
<testcase name="test.test_good.A.test_odd" status="run" result="completed" time="0"
  ><skipped>no moon</skipped></testcase>
<testcase name="test.test_good.A.test_known" status="run" result="completed" time="0"><output>x</output></testcase>
<testcase name="builtins.bin" status="run" result="completed" time="0" />
</testsuite>
<testsuite>
<testcase name="test.test_pack.test_bad.A.test_wrong" status="run" result="completed" time="0"
  ><system-out /><failure type="AssertionError">1 is not 2</failure></testcase>
<testcase name="test.test_pack.test_bad.A.test_mended" status="run" result="completed" time="0"
  ><outcome>UNEXPECTED_SUCCESS</outcome></testcase>
</testsuite>
</testsuites>"""

LOG = """== CPython 3.13.15
0:00:00 load avg: 1.92 Run 8 tests in parallel using 2 worker processes (timeout: 15 min, worker timeout: 20 min)
0:00:01 load avg: 1.92 [1/8] test_good passed
0:00:31 load avg: 1.92 running (2): test.test_pack.test_bad (30.1 sec), test_crash (30.0 sec)
0:01:02 load avg: 1.92 [2/8] test.test_pack.test_bad failed (1 failure) (1 min 1 sec) -- running (1): test_crash (1 min)
test test.test_pack.test_bad failed -- Traceback
0:01:03 load avg: 1.92 [3/8/1] test_crash worker non-zero exit code (Exit code -11 (SIGSEGV))
Fatal Python error: Segmentation fault
0:01:04 load avg: 1.92 [4/8/2] test_slow worker non-zero exit code (Exit code 1)
Timeout (0:15:00)!
Thread 0x00007f (most recent call first):
0:01:05 load avg: 1.92 [5/8/3] test_stuck timed out (20 min) (20 min)
0:01:06 load avg: 1.92 [6/8/4] test_denied skipped (resource denied)
0:01:07 load avg: 1.92 [7/8/4] test_untidy failed (env changed)
0:01:08 load avg: 1.92 [8/8/5] test_broken failed (uncaught exception)
ImportError: no such thing

== Tests result: FAILURE ==
"""


@pytest.fixture
def cpython(tmp_path: Path) -> cpython_tests.Found:
    (tmp_path / "junit.xml").write_text(JUNIT)
    return cpython_tests.read(tmp_path / "junit.xml", LOG)


def test_cpython_s_tests_and_modules(cpython: cpython_tests.Found) -> None:
    assert {name: test.outcome for name, test in cpython.tests.items()} == {
        "test.test_good.A.test_right": "passed",
        "test.test_good.A.test_odd": "skipped",
        "test.test_good.A.test_known": "xfailed",
        "test_good: builtins.bin": "passed",
        "test.test_pack.test_bad.A.test_wrong": "failed",
        "test.test_pack.test_bad.A.test_mended": "failed",
        "test_good": "passed",
        "test.test_pack.test_bad": "passed",  # its tests are what failed
        "test_crash": "crashed",
        "test_slow": "hung",
        "test_stuck": "hung",
        "test_denied": "skipped",
        "test_untidy": "passed",
        "test_broken": "failed",
    }
    assert len(cpython.modules) == 8


def test_why_and_how_long_in_cpython_s_suite(cpython: cpython_tests.Found) -> None:
    assert cpython.tests["test.test_good.A.test_right"].seconds == 0.75
    assert cpython.tests["test.test_pack.test_bad"].seconds == 61
    assert cpython.tests["test_stuck"].seconds == 1200
    assert cpython.tests["test.test_good.A.test_odd"].why == "no moon"
    assert cpython.tests["test.test_pack.test_bad.A.test_wrong"].why == "1 is not 2"
    assert "Fatal Python error" in cpython.tests["test_crash"].why
    assert "Thread 0x00007f" in cpython.tests["test_slow"].why
    assert cpython.tests["test_broken"].why.endswith("ImportError: no such thing")


@pytest.mark.parametrize(("junit", "log"), [(None, LOG), (JUNIT, "no line of progress")])
def test_without_results_there_is_an_error(junit: str | None, log: str, tmp_path: Path) -> None:
    if junit:
        (tmp_path / "junit.xml").write_text(junit)
    with pytest.raises(BuildError, match="ended without its results"):
        cpython_tests.read(tmp_path / "junit.xml", log)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("test.test_good.A.test_right", "test_good"),
        ("test.test_pack.test_bad.A.test_wrong", "test.test_pack.test_bad"),
        ("test_good: builtins.bin", "test_good"),
        ("test_good", "test_good"),
        ("test.test_goodness.A.test_x", "test_goodness"),
    ],
)
def test_the_module_of_a_test(name: str, module: str) -> None:
    assert cpython_tests.module_of(name, ("test_good", "test.test_pack.test_bad", "test.test_pack")) == module


def test_the_worst_counts_and_seconds_add_up() -> None:
    good = Test(outcome="passed", seconds=1.0, threads=4, why="")
    bad = Test(outcome="failed", seconds=0.5, threads=1, why="teardown")
    for pair in ((good, bad), (bad, good)):
        assert outcomes.merge([("a", each) for each in pair]) == {
            "a": Test(outcome="failed", seconds=1.5, threads=4, why="teardown")
        }


def test_a_test_has_one_name_wherever_in_memory_its_objects_lie() -> None:
    names = [f"test_url (parse=<function f at {place}>, port=0x1F)" for place in ("0x7f01c803c8280", "0x28c803c8280")]
    test = Test(outcome="passed", seconds=1.0, threads=1, why="")
    before, after = (outcomes.merge([(name, test)]) for name in names)
    assert before == after == {"test_url (parse=<function f at 0x…>, port=0x1F)": test}


def test_outcomes_are_counted_for_a_reader() -> None:
    tests = [Test(outcome=outcome, seconds=0.0, threads=1, why="") for outcome in ["passed"] * 1200 + ["hung"]]
    assert outcomes.count(tests) == "1,200 passed, 1 hung"
    assert outcomes.count([]) == "no tests"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}', '{"format": 1, "suite": "x"}'])
def test_a_file_that_holds_no_outcomes(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError, match="does not hold a suite's outcomes; remove it"):
        outcomes.load(tmp_path / "x.json")
