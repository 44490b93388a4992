"""What a session leaves for the report: its steps and how it ended, as one file for each session and variant."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ftnumpy.census.report import read, write
from ftnumpy.console import Summary
from ftnumpy.errors import FtnumpyError, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a session's summary; ``seconds`` is how long it took."""

    what: str
    seconds: float
    result: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A session's last run on a variant.

    ``command`` is what was typed, ``variant`` has the profile behind it where that is not the default, ``ended`` is in
    UTC, ``error`` is empty when it went well.  ``builds`` holds, by variant, the fingerprints of the interpreter and
    of the wheel that it ran on.
    """

    session: str
    variant: str
    command: str
    ended: str
    seconds: float
    error: str
    steps: tuple[Step, ...]
    builds: dict[str, tuple[str, ...]]


def folder(settings: Settings) -> Path:
    """Where outcomes lie."""
    return settings.root / ".build" / "results"


@contextmanager
def kept(command: str, session: str, settings: Settings, options: Options, summary: Summary) -> Iterator[None]:
    """Keep how the body ends, in place of the run before.

    Not kept is what says nothing of the variant: a run that is interrupted, that was asked what can't be meant, or that
    ended well without a build, as a census of another interpreter does.
    """
    start = time.time()
    try:
        yield
    except UsageError:
        raise
    except FtnumpyError as error:
        _save(settings, _outcome(command, session, options, summary, start, str(error)))
        raise
    if summary.builds:
        _save(settings, _outcome(command, session, options, summary, start, ""))


def _outcome(command: str, session: str, options: Options, summary: Summary, start: float, error: str) -> Outcome:
    end = time.time()
    return Outcome(
        session=session,
        variant=options.environment_name,
        command=command,
        ended=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end)),
        seconds=end - start,
        error=error,
        steps=tuple(Step(what=row.what, seconds=row.seconds, result=row.result) for row in summary.rows),
        builds=dict(summary.builds),
    )


def _save(settings: Settings, outcome: Outcome) -> None:
    folder(settings).mkdir(parents=True, exist_ok=True)
    path = folder(settings) / f"{outcome.session}-{outcome.variant}.json"
    write(path, json.dumps({"format": FORMAT} | asdict(outcome), indent=1) + "\n")


def load(path: Path) -> Outcome:
    """The outcome in ``path``.  Raises `UsageError` when that is none, or one of another format."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise ValueError
        outcome: Outcome = read(Outcome, data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{path} is no result that this ftnumpy keeps; remove it and run its session again") from None
    return outcome


def outcomes(settings: Settings) -> tuple[Outcome, ...]:
    """All that are kept, by session and variant."""
    return tuple(load(path) for path in sorted(folder(settings).glob("*.json")))
