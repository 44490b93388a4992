"""How kinds of stress share the time, what they report, and that a crash, a hang or a wrong result fails the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ftnumpy import environment, errors, stress, suites
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, Release, Stack, read_stack

GOOD = "import json, sys; print('made much'); print(json.dumps({'ops': 1000 + len(sys.argv)}))"


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(variant=PATCHED, profile="default", minutes=0.5, seed=7, logs=tmp_path / "logs")


@pytest.fixture
def kinds(settings: Settings, monkeypatch: pytest.MonkeyPatch, release: Release, tmp_path: Path) -> Path:
    """The folder of two kinds, both good, that are run by the Python that runs this."""
    folder = settings.root / "tests" / "stress"
    folder.mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(stress, "KINDS", ("first_kind", "second_kind"))
    for kind in stress.KINDS:
        (folder / f"{kind}.py").write_text(GOOD)
    interpreter = Interpreter(Path(sys.executable), tmp_path, "aa", release, "ft1", False)
    made = Environment(tmp_path, Path(sys.executable), interpreter, Wheel(tmp_path / "w.whl", "1", "bb", False))
    monkeypatch.setattr(environment, "test_environment", lambda *_: made)
    monkeypatch.setattr(suites, "tests_variables", lambda _: dict(os.environ))
    return folder


def test_each_kind_reports_its_operations(
    stack: Stack, settings: Settings, options: Options, kinds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = Summary("stress")
    stress.run(stack, settings, options, summary)
    assert [(row.what, row.result) for row in summary.rows] == [
        ("stress: first kind", "1,005 operations"),
        ("stress: second kind", "1,005 operations"),
    ]
    shown = capsys.readouterr().out
    assert "2 kinds, 15 s each, seed 7" in shown
    assert "2 kinds passed, 2,010 operations" in shown


def test_the_time_is_shared_and_the_seed_is_told(
    stack: Stack, settings: Settings, options: Options, kinds: Path
) -> None:
    (kinds / "first_kind.py").write_text(
        "import sys\nassert sys.argv[1:] == ['--seconds', '15.0', '--seed', '7']\n" + GOOD
    )
    stress.run(stack, settings, options, Summary("stress"))


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
    stack: Stack, settings: Settings, options: Options, kinds: Path, code: str, told: str
) -> None:
    (kinds / "first_kind.py").write_text(code)
    summary = Summary("stress")
    with pytest.raises(errors.TestsFailed) as caught:
        stress.run(stack, settings, options, summary)
    assert [row.result for row in summary.rows] == ["failed", "1,005 operations"]
    assert told in str(caught.value)
    assert "1 of 2 kinds failed (--minutes 0.5 --seed 7 --variant patched)" in str(caught.value)
    assert str(options.logs / "first_kind.log") in str(caught.value)


def test_a_kind_that_hangs_is_ended(
    stack: Stack, settings: Settings, options: Options, kinds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stress, "PATIENCE", -44.0)  # 3 * 15 s and this: 1 s
    (kinds / "first_kind.py").write_text("import time; time.sleep(60)")
    with pytest.raises(errors.TestsFailed, match=r"ran past its 1\.0 s"):
        stress.run(stack, settings, options, Summary("stress"))


def test_every_kind_has_its_file() -> None:
    files = {file.stem for file in (ROOT / "tests" / "stress").glob("*.py")} - {"arena"}
    assert files == set(stress.KINDS)
