"""The command line: what it accepts, and the exit code of each way to end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ftnumpy import __main__, doctor, environment, lint, results
from ftnumpy.census import command as census_command
from ftnumpy.census.wishes import Wishes
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.errors import BudgetExceeded, BuildError, CommandFailed, FtnumpyError, PatchError, SourceError, UsageError
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT
from ftnumpy.stack import Variant, read_stack

Body = Callable[..., str | None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FTNUMPY_SOURCES", "FTNUMPY_OFFLINE", "FTNUMPY_JOBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FTNUMPY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(results, "folder", lambda _: tmp_path / "results")
    return tmp_path / "cache"


def replace_build(monkeypatch: pytest.MonkeyPatch, body: Body) -> None:
    monkeypatch.setattr(__main__, "build_ft", body)


def test_sessions_share_their_options(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    seen: list[Options] = []
    replace_build(monkeypatch, lambda stack, settings, options, summary: seen.append(options))
    words = ["--variant", "c2n1", "--profile", "release", "--minutes", "0.5", "--seed", "7"]
    assert __main__.main(["build-ft", *words]) == 0
    assert seen[0].variant == Variant(name="c2n1", cpython_patches=2, numpy_patches=1)
    assert (seen[0].profile, seen[0].minutes, seen[0].seed) == ("release", 0.5, 7)
    assert seen[0].logs.is_dir() and seen[0].logs.is_relative_to(cache / "logs")
    for command in ("test", "stress"):
        parsed = [vars(__main__._parser().parse_args([each, *words])) for each in (command, "build-ft")]
        assert parsed[0] | parsed[1] | {"command": command} == parsed[0], "a session may take more, but none less"


def test_a_wheel_for_checks_does_not_lie_with_those_for_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = read_stack(ROOT / "stack.toml").cpython.releases[0]
    made = Environment(
        folder=tmp_path,
        python=tmp_path / "python",
        interpreter=Interpreter(tmp_path / "python", tmp_path, "aa", release, "ft1", False),
        wheel=Wheel(tmp_path / "numpy.whl", "2+ft1", "bb", False),
    )
    exported: list[Wheel] = []
    monkeypatch.setattr(environment, "user_environment", lambda *_: made)
    monkeypatch.setattr(environment, "export_wheel", lambda _, wheel: exported.append(wheel) or wheel.path)
    assert __main__.main(["build-ft", "--variant", "tsan"]) == 0
    assert exported == [] and "for checks only" in capsys.readouterr().out
    assert __main__.main(["build-ft"]) == 0
    assert exported == [made.wheel]


def test_the_default_is_the_whole_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Options] = []
    replace_build(monkeypatch, lambda stack, settings, options, summary: seen.append(options))
    assert __main__.main(["build-ft"]) == 0
    assert (seen[0].variant.name, seen[0].profile) == ("patched", "default")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "required: session"),
        (["bild"], "invalid choice: 'bild'"),
        (["build-ft", "--variant", "half"], "there is no variant 'half'"),
        (["build-ft", "--profile", "fast"], "invalid choice: 'fast'"),
        (["stress", "--minutes", "0"], "0 minutes can't be meant"),
        (["stress", "--minutes", "nan"], "nan minutes can't be meant"),
        (["stress", "--minutes", "soon"], "invalid _minutes value: 'soon'"),
        (["stress", "--seed", "-1"], "can't be a seed"),
        (["patches"], "required: action"),
        (["patches", "burn"], "invalid choice: 'burn'"),
        (["lint", "--fast"], "unrecognized arguments: --fast"),
        (["census", "--threads", "0"], "0 can't be meant"),
        (["census", "--iterations", "-5", "sin"], "-5 can't be meant"),
        (["census", "--quick", "sin"], "unrecognized arguments: --quick"),
        (["bench", "--fast"], "unrecognized arguments: --fast"),
        (["tsan", "--variant", "stock"], "unrecognized arguments: --variant stock"),
        (["wheels", "--variant", "stock"], "unrecognized arguments: --variant stock"),
        (["wheels", "--url", "host/folder"], "host/folder can't be meant"),
        (["profile", "--seconds", "0"], "0 seconds can't be meant"),
        (["profile", "chain-10", "add-at"], "unrecognized arguments: add-at"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    assert __main__.main(words) == 2
    message = capsys.readouterr().err
    assert told in message and message.count("\n") == 1
    assert not cache.exists(), "nothing is made before the words are understood"


@pytest.mark.parametrize(
    "error",
    [
        UsageError("x"),
        SourceError("x"),
        PatchError("x"),
        BuildError("x"),
        CommandFailed("x", "y", Path("log"), []),
        BudgetExceeded("x"),
    ],
)
def test_each_failure_has_its_exit_code_and_the_summary_is_shown(
    error: FtnumpyError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(stack: object, settings: object, options: Options, summary: Summary) -> None:
        log = options.logs / "there.log"
        log.write_text("")
        with summary.step("early", log):
            pass
        with summary.step("late", options.logs / "absent.log"):
            raise error

    replace_build(monkeypatch, body)
    assert __main__.main(["build-ft"]) == type(error).exit_code
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: {error}")
    table = shown.out[shown.out.index("build-ft") :]
    assert "early" in table and "late" in table and "failed" in table
    assert "absent" not in table, "a log that does not exist is not shown"


def test_an_interruption_ends_with_130_and_the_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(stack: object, settings: object, options: object, summary: Summary) -> None:
        with summary.step("long"):
            raise KeyboardInterrupt

    replace_build(monkeypatch, body)
    assert __main__.main(["build-ft"]) == 130
    shown = capsys.readouterr()
    assert "next run goes on" in shown.err and "long" in shown.out


def test_a_full_disk_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/some/log")

    replace_build(monkeypatch, body)
    assert __main__.main(["build-ft"]) == 1
    assert "No space left on device: /some/log" in capsys.readouterr().err


def test_our_own_mistakes_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(*_: object) -> None:
        raise ZeroDivisionError

    replace_build(monkeypatch, body)
    with pytest.raises(ZeroDivisionError):
        __main__.main(["build-ft"])


def test_being_asked_to_end_is_an_interruption(cache: Path) -> None:
    script = (
        "import sys, time\nfrom ftnumpy import __main__\n"
        "def slow(*_):\n    print('inside', flush=True)\n    time.sleep(60)\n"
        "__main__.build_ft = slow\nsys.exit(__main__.main(['build-ft']))\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "inside\n"
    start = time.monotonic()
    run.terminate()
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 130 and "interrupted" in errors and time.monotonic() - start < 10


def test_lint_and_doctor_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(lint, "run", lambda *_: called.append("lint"))
    monkeypatch.setattr(doctor, "run", lambda *_: called.append("doctor"))
    assert [__main__.main(["lint"]), __main__.main(["doctor"])] == [0, 0]
    assert called == ["lint", "doctor"]


def test_what_follows_a_censuss_target_is_the_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Wishes, Options]] = []
    monkeypatch.setattr(
        census_command, "run", lambda wishes, stack, settings, options, summary: seen.append((wishes, options))
    )
    words = ["--variant", "stock", "--threads", "4", "--no-native", "program.py", "--threads", "8", "--", "-x"]
    assert __main__.main(["census", *words]) == 0
    wishes, options = seen[0]
    assert wishes == Wishes(
        words=("program.py", "--threads", "8", "--", "-x"),
        python=None,
        threads=4,
        iterations=None,
        native=False,
        out=None,
        fetch_qemu=False,
    )
    assert options.variant.name == "stock"


def test_a_census_without_words_is_the_whole_list_on_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Wishes, Options]] = []
    monkeypatch.setattr(
        census_command, "run", lambda wishes, stack, settings, options, summary: seen.append((wishes, options))
    )
    assert __main__.main(["census"]) == 0
    wishes, options = seen[0]
    assert (wishes.words, wishes.threads, wishes.native, options.variant.name) == ((), 2, True, "patched")


def test_nox_lists_the_sessions_with_one_line_each() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "-f", ROOT / "noxfile.py", "-l"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in listed.splitlines() if line.startswith(("* ", "- "))]
    assert [line.split()[1] for line in lines] == [
        "build-ft",
        "test",
        "stress",
        "tsan",
        "asan",
        "semantics",
        "upstream",
        "kernel",
        "census",
        "profile",
        "bench",
        "scaling",
        "wheels",
        "report",
        "lint",
        "doctor",
        "patches",
    ]
    assert all(" -> " in line and len(line) < 120 for line in lines)


def test_what_a_session_returns_is_said_below_its_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def body(stack: object, settings: object, options: object, summary: Summary) -> str:
        with summary.step("work"):
            pass
        return "the wheel is there"

    replace_build(monkeypatch, body)
    assert __main__.main(["build-ft"]) == 0
    assert capsys.readouterr().out.endswith("┘\nthe wheel is there\n")


def test_a_session_that_ran_leaves_its_outcome(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def body(*_: object) -> None:
        raise BuildError("too warm")

    replace_build(monkeypatch, body)
    assert __main__.main(["build-ft", "--variant", "c1n0"]) == 6
    found = results.load(cache.parent / "results" / "build-ft-c1n0.json")
    assert (found.command, found.error) == ("nox -s build-ft -- --variant c1n0", "too warm")
