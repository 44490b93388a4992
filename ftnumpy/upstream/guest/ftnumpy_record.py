"""A pytest plugin for the interpreter under test: keeps what became of each test, and ends a test that hangs.

``--record FOLDER`` gets ``reports.jsonl``, a line for each test as soon as it has ended, and for each worker of xdist
a file that names the test that it runs, followed by the stacks of its threads when the test hangs or crashes.  Needs
xdist, whose controller outlives a worker that crashes.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

LONGEST = 4000  # characters that are kept of why a test failed


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ftnumpy")
    group.addoption("--record", type=Path, help="folder for what became of each test")
    group.addoption("--limit", type=float, help="seconds that a test may take")


def pytest_configure(config: pytest.Config) -> None:
    folder: Path = config.getoption("record")
    worker: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker is None:
        config.pluginmanager.register(Record(folder / "reports.jsonl"))
    else:
        config.pluginmanager.register(Watch(config, folder / f"{worker['workerid']}.txt"))


class Watch:
    """In a worker.  The watchdog is faulthandler's own thread, which needs nothing of an interpreter that hangs."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self.file = file.open("w", encoding="utf-8")
        self.limit: float = config.getoption("limit")
        self.parallel: Any = config.pluginmanager.get_plugin("_run-parallel")

    def pytest_sessionstart(self) -> None:
        # After pytest's own plugin, which writes to standard error, where nothing says which worker it was.
        faulthandler.enable(self.file)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.file.seek(0)
        self.file.truncate()
        print(item.nodeid, file=self.file, flush=True)
        faulthandler.dump_traceback_later(self.limit, exit=True, file=self.file)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        threads = self.parallel.run_in_parallel.get(item.nodeid, 1)
        report.user_properties = [("threads", threads), ("gil", vars(sys)["_is_gil_enabled"]())]
        return report


class Record:
    """In the controller."""

    def __init__(self, file: Path) -> None:
        self.file = file.open("w", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        # The controller makes up a report of a phase of its own for a test whose worker is gone.
        outcome = "crashed" if str(report.when) == "???" else _outcome(report)
        properties = dict(report.user_properties)
        threads, gil = properties.get("threads", 1), properties.get("gil", False)
        self.write(
            test=report.nodeid, outcome=outcome, seconds=report.duration, threads=threads, gil=gil, why=_why(report)
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write(test=report.nodeid, outcome="failed", seconds=0, threads=1, gil=False, why=_why(report))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.write(finished=int(exitstatus))

    def write(self, **fields: object) -> None:
        print(json.dumps(fields), file=self.file, flush=True)


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "passed"
    return report.outcome


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    expected: str | None = getattr(report, "wasxfail", None)
    if expected is not None:
        return expected
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return "" if report.passed else str(report.longrepr)[-LONGEST:]
