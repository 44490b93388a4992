from __future__ import annotations

from pathlib import Path

import pytest

from ftnumpy import console


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (0.44, "0.4 s"), (12.4, "12 s"), (60, "1 min 00 s"), (187, "3 min 07 s"), (3725, "62 min 05 s")],
)
def test_duration(seconds, text):
    assert console.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(9.97, "10 s"), (59.7, "1 min 00 s"), (119.6, "2 min 00 s")])
def test_duration_rounds_before_it_chooses_the_unit(seconds, text):
    assert console.duration(seconds) == text


def test_results_and_trouble_go_to_different_streams(capsys):
    console.say("a result")
    console.warn("a warning")
    console.fail("an error")
    captured = capsys.readouterr()
    assert captured.out == "a result\n"
    assert captured.err == "warning: a warning\nerror: an error\n"


def test_brackets_and_long_lines_are_not_touched(capsys):
    text = "[bold]deb [arch=amd64]" + " long" * 60
    console.say(text)
    console.warn(text)
    captured = capsys.readouterr()
    assert captured.out == f"{text}\n"
    assert captured.err == f"warning: {text}\n"


def test_transfer_is_silent_without_a_terminal_and_counts(capsys):
    with console.transfer("file", total=10, start=4) as progress:
        progress.update(progress.task_ids[0], advance=6)
        assert progress.tasks[0].completed == 10
    assert capsys.readouterr().out == ""


def test_summary_shows_every_step_with_its_result_and_log(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("second.log").touch()
    summary = console.Summary("build")
    with summary.step("first"):
        pass
    with summary.step("second", log=Path("second.log")) as result:
        result.append("12 files")
    capsys.readouterr()
    summary.show()
    shown = capsys.readouterr().out
    for part in ("build", "first", "ok", "second", "12 files", "second.log"):
        assert part in shown


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt])
def test_failed_step_is_recorded_and_passed_on(capsys, trouble):
    summary = console.Summary("build")
    with pytest.raises(trouble), summary.step("only") as result:
        result.append("half")
        raise trouble
    assert [(row.what, row.result) for row in summary.rows] == [("only", "failed")]
    assert "✗ only: failed after" in capsys.readouterr().out
