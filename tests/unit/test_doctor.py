"""doctor shows what is there and fails only for what builds can't do without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import doctor, fingerprint, prerequisites
from ftnumpy.errors import PrerequisiteError
from ftnumpy.prerequisites import NEEDS, Finding
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import Stack, read_stack


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


def lack(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    findings = [Finding(need, need.name not in names, "1.2") for need in NEEDS]
    monkeypatch.setattr(prerequisites, "check", lambda settings: findings)


def test_a_whole_machine_passes_and_shows_its_builds(
    stack: Stack, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lack(monkeypatch)

    def build(work: Path, final: Path) -> Path:
        (work / "stage").mkdir()
        return work / "stage"

    made, _ = fingerprint.build_once(settings, "cpython", {}, build)
    doctor.run(stack, settings)
    shown = capsys.readouterr().out
    assert made.name in shown and "took 0.0 s" in shown
    assert "MISSING" not in shown


def test_without_something_optional_it_warns(
    stack: Stack, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lack(monkeypatch, "gdbm")
    doctor.run(stack, settings)
    assert "optional: gdbm" in capsys.readouterr().err


def test_without_something_needed_it_fails_after_showing_all(
    stack: Stack, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lack(monkeypatch, "gdbm", "zlib")
    with pytest.raises(PrerequisiteError, match="zlib") as raised:
        doctor.run(stack, settings)
    assert "gdbm" not in str(raised.value)
    assert "this machine" in capsys.readouterr().out


def test_the_channels_shown_are_those_that_will_be_asked(
    stack: Stack, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lack(monkeypatch)
    doctor.run(stack, settings)
    assert "cache, url, apt, index" in capsys.readouterr().out
    doctor.run(stack, replace(settings, offline=True, sources=settings.root))
    assert "cache, folder " in capsys.readouterr().out
