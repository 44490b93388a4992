"""What is run on a variant, how closing lines are read, and that one failure does not stop the rest."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import environment, errors, patchqueue, suites
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.patchqueue import Patch
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, STOCK, Release, Stack, Variant, read_stack
from ftnumpy.suites import Suite


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(variant=PATCHED, profile="default", minutes=1.0, seed=1, logs=tmp_path / "logs")


@pytest.fixture
def made(tmp_path: Path, release: Release) -> Environment:
    """An environment in which numpy stands where pip puts it."""
    folder = tmp_path / ".build" / "patched-test"
    (folder / "lib" / "python3.13t" / "site-packages" / "numpy").mkdir(parents=True)
    interpreter = Interpreter(tmp_path / "python3.13t", tmp_path, "aa", release, "ft1", False)
    return Environment(folder, folder / "bin" / "python", interpreter, Wheel(tmp_path / "w.whl", "1", "bb", False))


def suite(name: str, code: str) -> Suite:
    return Suite(
        name=name,
        command=[sys.executable, "-c", code],
        folder=Path.cwd(),
        environment={},
        timeout=60,
        closing=suites.pytest_closing,
        excluded={},
    )


KINDS = ("unit", "faults", "patches", "threads", "numpy", "cpython")


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch, made: Environment) -> dict[str, Suite]:
    """The suites that `run` runs, by kind; all pass unless a test replaces one."""
    kinds = {kind: suite(kind, "print('== 3 passed in 0.10s ==')") for kind in KINDS}
    monkeypatch.setattr(environment, "test_environment", lambda *_: made)
    monkeypatch.setattr(suites, "applied", lambda *_: [])
    for kind in kinds:
        monkeypatch.setattr(suites, f"{kind}_suite", lambda *_, kind=kind: kinds[kind])
    return kinds


def test_all_pass_and_their_closing_lines_close_the_output(
    stack: Stack, settings: Settings, options: Options, replaced: dict[str, Suite], capsys: pytest.CaptureFixture[str]
) -> None:
    replaced["cpython"] = suite("cpython", "print('== 12 passed, 1 skipped in 61.00s (0:01:01) ==')")
    summary = Summary("test")
    suites.run(stack, settings, options, summary)
    assert [(row.what, row.result) for row in summary.rows] == [
        *((kind, "3 passed") for kind in KINDS[:-1]),
        ("cpython", "12 passed, 1 skipped"),
    ]
    shown = capsys.readouterr().out.splitlines()
    assert shown[-6:-1] == [f"{kind}: 3 passed in 0.10s" for kind in KINDS[:-1]]
    assert shown[-1] == "cpython: 12 passed, 1 skipped in 61.00s (0:01:01)"


def test_after_a_failure_the_rest_still_runs(
    stack: Stack, settings: Settings, options: Options, replaced: dict[str, Suite]
) -> None:
    replaced["unit"] = suite("unit", "print('FAILED one'); print('1 failed, 2 passed in 1.00s'); raise SystemExit(1)")
    replaced["numpy"] = suite("numpy", "print('FAILED two'); raise SystemExit(2)")
    summary = Summary("test")
    with pytest.raises(errors.TestsFailed) as caught:
        suites.run(stack, settings, options, summary)
    assert [row.result for row in summary.rows] == ["failed", *["3 passed"] * 3, "failed", "3 passed"]
    assert "FAILED one" in str(caught.value) and "FAILED two" in str(caught.value)
    assert str(options.logs / "unit.log") in str(caught.value)


def test_success_without_a_count_is_a_failure(
    stack: Stack, settings: Settings, options: Options, replaced: dict[str, Suite]
) -> None:
    replaced["patches"] = suite("patches", "print('all fine')")
    with pytest.raises(errors.TestsFailed, match="does not say how many tests ran"):
        suites.run(stack, settings, options, Summary("test"))


def test_what_is_left_out_is_told(
    stack: Stack, settings: Settings, options: Options, replaced: dict[str, Suite], capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = {"test_x.Y.test_z": "needs the moon"}
    replaced["cpython"] = replace(replaced["cpython"], excluded=left_out)
    suites.run(stack, settings, options, Summary("test"))
    assert "left out: test_x.Y.test_z (needs the moon)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "closing"),
    [
        ("5 passed in 2.10s", "5 passed in 2.10s"),
        ("======= 1 failed, 5 passed, 2 xfailed in 2.10s =======", "1 failed, 5 passed, 2 xfailed in 2.10s"),
        ("===== 33 skipped in 2.10s =====", "33 skipped in 2.10s"),
        ("== 14033 passed, 19 skipped in 126.47s (0:02:06) ==", "14033 passed, 19 skipped in 126.47s (0:02:06)"),
        ("== no tests ran in 0.01s ==", None),
        ("== 1 error in 0.01s ==", None),
        ("the 5 passed in 2.10s", None),
    ],
)
def test_pytest_s_closing_line(line: str, closing: str | None) -> None:
    assert suites.pytest_closing(f"before\n{line}\n") == closing


def test_regrtest_s_closing_lines() -> None:
    log = (
        "18 tests OK.\n\nTotal duration: 1 min 9 sec\nTotal tests: run=3,163 failures=1 skipped=210\n"
        "Total test files: run=20/20 failed=1 skipped=1\nResult: FAILURE\n"
    )
    assert suites.regrtest_closing(log) == "3163 run, 1 failures, 210 skipped; 20/20 files, 1 failed, 1 skipped"
    assert suites.regrtest_closing("Total tests: run=1\nTotal test files: run=1/1\n") == "1 run; 1/1 files"
    assert suites.regrtest_closing("Result: SUCCESS\n") is None


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (STOCK, []),
        (PATCHED, ["cpython-patches/1.patch", "cpython-patches/2.patch", "patches/1.patch", "patches/2.patch"]),
        (Variant(name="c2n1", cpython_patches=2, numpy_patches=1), None),
    ],
)
def test_patches_are_told_as_the_variant_has_them(
    stack: Stack, settings: Settings, variant: Variant, expected: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        patchqueue,
        "read_queue",
        lambda queue: tuple(Patch(settings.root / queue.folder.name / f"{n}.patch", "x") for n in (1, 2)),
    )
    if expected is None:
        expected = ["cpython-patches/1.patch", "cpython-patches/2.patch", "patches/1.patch"]
    assert suites.applied(stack, settings, variant) == expected


def test_upstream_s_suites_run_with_clean_eyes(
    settings: Settings, made: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("PYTHONMALLOC", "debug")
    for each in (suites.numpy_suite(settings, made, tmp_path), suites.cpython_suite(settings, made, tmp_path)):
        assert not [name for name in each.environment if name.startswith("PYTHON")]
        assert each.environment["PATH"].startswith(f"{made.folder / 'bin'}:")
        assert each.folder == tmp_path, "not in the checkout, where an ini file waits"


def test_exclusions_reach_the_commands(
    settings: Settings, made: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "NUMPY_EXCLUDED", {"numpy/_core/tests/test_ufunc.py::test_a": "why"})
    monkeypatch.setattr(suites, "CPYTHON_EXCLUDED", {"test.test_sys.A.test_b": "why"})
    numpy, cpython = suites.numpy_suite(settings, made, tmp_path), suites.cpython_suite(settings, made, tmp_path)
    assert "--deselect=numpy/_core/tests/test_ufunc.py::test_a" in numpy.command
    assert "--ignore=test.test_sys.A.test_b" in cpython.command
    assert (numpy.excluded, cpython.excluded) == (suites.NUMPY_EXCLUDED, suites.CPYTHON_EXCLUDED)
