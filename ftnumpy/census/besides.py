"""What a report says besides the census: a native run of the same workload, and what the model makes of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ftnumpy import console
from ftnumpy.census import dump, handover, model, native
from ftnumpy.census.handover import NotMeasurable
from ftnumpy.census.report import Report
from ftnumpy.census.runner import Taken
from ftnumpy.census.timing import Prediction
from ftnumpy.census.workloads import Workload
from ftnumpy.settings import Settings

TRACE = model.TRACED  # accesses of each thread that the census must keep in order


def workload(taken: Taken, ran: Workload, python: Path, *, settings: Settings, log: Path) -> Report:
    """A report on ``ran``, of which ``taken`` is the census, with as many threads.  Takes some 10 s."""
    threads = taken.census.threads
    times = native.take_times(ran, python, threads=threads, settings=settings, log=log)
    return Report(
        census=taken.census,
        native=native.count(ran, python, times, threads=threads, settings=settings, log=log),
        prediction=_predict(taken, times, settings, log),
    )


def program(taken: Taken, words: Sequence[str], python: Path, *, settings: Settings, log: Path) -> Report:
    """A report on the program and arguments ``words``.  Nothing is predicted: how a program's work divides among more
    threads is its own affair."""
    found = native.count_program(words, python, threads=taken.census.threads, settings=settings, log=log)
    return Report(census=taken.census, native=found, prediction=None)


def _predict(taken: Taken, times: native.Times, settings: Settings, log: Path) -> Prediction | None:
    try:
        cost = handover.measure(settings, log)
    except NotMeasurable as error:
        console.say(f"  no prediction: {error}")
        return None
    return model.predict(taken.census, dump.read(taken.dump), times, cost, settings=settings, log=log)
