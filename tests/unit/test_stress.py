"""How kinds of stress share the time, what they report, and that a crash, a hang or a wrong result fails the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ftnumpy import environment, errors, suites
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, Release, Stack, read_stack
from ftnumpy.stress import command, kinds
from ftnumpy.stress.kinds import KINDS, Kind

GOOD = "import json, sys; print('made much'); print(json.dumps({'ops': 1000 + len(sys.argv)}))"

# Leaves samples in each of which there is one more block than in the one before, times 1000.
GROWING = """
import json, sys
with open(sys.argv[-1], "w") as file:
    for i in range(30):
        others = dict.fromkeys(("resident", "descriptors", "threads", "uncollectable", "collections"), 5)
        print(json.dumps({"seconds": float(i), "blocks": 1000 * i, "objects": {"dict": 7}, **others}), file=file)
"""


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(variant=PATCHED, profile="default", minutes=0.5, seed=7, logs=tmp_path / "logs")


@pytest.fixture
def kinds_folder(settings: Settings, monkeypatch: pytest.MonkeyPatch, release: Release, tmp_path: Path) -> Path:
    """The folder of two kinds, both good, that are run by the Python that runs this."""
    folder = settings.root / "tests" / "stress"
    folder.mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(kinds, "KINDS", (Kind(name="first_kind", share=2), Kind(name="second_kind")))
    for kind in kinds.KINDS:
        (folder / f"{kind.name}.py").write_text(GOOD)
    interpreter = Interpreter(Path(sys.executable), tmp_path, "aa", release, "ft1", False)
    made = Environment(tmp_path, Path(sys.executable), interpreter, Wheel(tmp_path / "w.whl", "1", "bb", False))
    monkeypatch.setattr(environment, "test_environment", lambda *_: made)
    monkeypatch.setattr(suites, "tests_variables", lambda _: dict(os.environ))
    return folder


def test_each_kind_reports_its_operations(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = Summary("stress")
    closing = command.run((), stack, settings, options, summary)
    assert [(row.what, row.result) for row in summary.rows] == [
        ("stress: first kind", "1,007 operations, too short to judge what it holds (0 samples)"),
        ("stress: second kind", "1,007 operations, too short to judge what it holds (0 samples)"),
    ]
    shown = capsys.readouterr().out
    assert "2 kinds, 30 s, seed 7" in shown
    assert "2 kinds passed, 2,014 operations" in closing


def test_the_time_is_shared_and_the_seed_is_told(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path
) -> None:
    (kinds_folder / "first_kind.py").write_text(
        "import sys\nassert sys.argv[1:6] == ['--seconds', '20.0', '--seed', '7', '--samples']\n" + GOOD
    )
    command.run((), stack, settings, options, Summary("stress"))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; print('about to', flush=True); os.abort()", "ended by signal 6"),
        ("assert 1 == 2, 'array 5 is wrong'", "array 5 is wrong"),
        ("print('fine')", "did not say what it did"),
        ("print('[]')", "did not say what it did"),
        ("", "did not say what it did"),
    ],
)
def test_a_failing_kind_fails_the_session_after_the_others(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path, code: str, told: str
) -> None:
    (kinds_folder / "first_kind.py").write_text(code)
    summary = Summary("stress")
    with pytest.raises(errors.TestsFailed) as caught:
        command.run((), stack, settings, options, summary)
    assert summary.rows[0].result == "failed" and summary.rows[1].result.startswith("1,007 operations")
    assert told in str(caught.value)
    assert "1 of 2 kinds failed (--minutes 0.5 --seed 7 --variant patched)" in str(caught.value)
    assert str(options.logs / "first_kind.log") in str(caught.value)


def test_a_kind_that_hangs_is_ended(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PATIENCE", -29.0)  # 1.5 * 20 s and this: 1 s
    (kinds_folder / "first_kind.py").write_text("import time; time.sleep(60)")
    with pytest.raises(errors.TestsFailed, match=r"ran past its 1\.0 s"):
        command.run((), stack, settings, options, Summary("stress"))


def test_chosen_kinds_get_all_the_time(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kinds_folder / "second_kind.py").write_text("import sys\nassert sys.argv[2] == '30.0'\n" + GOOD)
    closing = command.run(("second_kind",), stack, settings, options, Summary("stress"))
    assert closing.startswith("1 kinds passed, 1,007 operations")


def test_an_unknown_kind_is_refused_before_anything_is_built(
    stack: Stack, settings: Settings, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "test_environment", lambda *_: pytest.fail("something was built"))
    with pytest.raises(errors.UsageError, match="no kind of stress 'kernal'; there are kernel, "):
        command.run(("kernal",), stack, settings, options, Summary("stress"))


def test_what_grows_fails_the_kind_and_is_kept(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path
) -> None:
    (kinds_folder / "first_kind.py").write_text(GROWING + GOOD)
    with pytest.raises(errors.TestsFailed) as caught:
        command.run((), stack, settings, options, Summary("stress"))
    assert "first_kind holds more and more:\n  blocks: 12,500, later 26,500\n" in str(caught.value)
    folder = settings.root / ".build" / "stress" / "patched"
    assert len((folder / "first_kind.jsonl").read_text().splitlines()) == 30
    assert (folder / "held.svg").stat().st_size > 1000 and (folder / "held.png").stat().st_size > 1000


def test_what_upstream_lets_grow_may_grow(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "KINDS", (Kind(name="first_kind", grows=("blocks",)),))
    (kinds_folder / "first_kind.py").write_text(GROWING + GOOD)
    summary = Summary("stress")
    command.run((), stack, settings, options, summary)
    assert summary.rows[0].result == "1,007 operations, level (0 to 0 MiB)"


def test_samples_of_an_earlier_run_are_not_judged(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path
) -> None:
    folder = settings.root / ".build" / "stress" / "patched"
    folder.mkdir(parents=True)
    (folder / "first_kind.jsonl").write_text("not even JSON\n")
    command.run((), stack, settings, options, Summary("stress"))


def test_samples_that_are_none_fail_the_kind(
    stack: Stack, settings: Settings, options: Options, kinds_folder: Path
) -> None:
    (kinds_folder / "first_kind.py").write_text("import sys; open(sys.argv[-1], 'w').write('{}')\n" + GOOD)
    with pytest.raises(errors.TestsFailed, match=r"first_kind\.jsonl holds something else than samples"):
        command.run((), stack, settings, options, Summary("stress"))


def test_every_kind_has_its_file() -> None:
    files = {file.stem for file in (ROOT / "tests" / "stress").glob("*.py")} - {"arena"}
    assert files == {kind.name for kind in KINDS}
