"""A variant's interpreter with the suite in it, that runs a benchmark when it is asked to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ftnumpy import suites
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Worker:
    """A running process.  ``log`` has what it says on standard error."""

    process: subprocess.Popen[str]
    log: Path

    def seconds(self, benchmark: str, number: int) -> float:
        """How long ``number`` calls of ``benchmark`` take.  Raises `BuildError` when the process has ended."""
        self.ask(benchmark, number)
        return self.answer(benchmark)

    def ask(self, benchmark: str, number: int) -> None:
        """Let the process begin; `answer` is to follow."""
        assert self.process.stdin is not None
        # Of a process that has ended, the answer is missing, too.
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"benchmark": benchmark, "number": number}) + "\n")
            self.process.stdin.flush()

    def answer(self, benchmark: str) -> float:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        if not answer:
            raise BuildError(f"the process that ran {benchmark} ended before it answered; its log says why: {self.log}")
        return float(json.loads(answer))


@contextmanager
def started(made: Environment, benchmarks: Path, log: Path, *, under: Sequence[str | Path] = ()) -> Iterator[Worker]:
    """A worker on the suite in ``benchmarks``, perhaps ``under`` a tool; gone when the body ends."""
    with log.open("ab") as sink:
        child = _start([*under, made.python, WORKER, benchmarks], variables(made), sink)
        try:
            yield Worker(child, log)
        finally:
            child.kill()
            child.wait()


def variables(made: Environment) -> Mapping[str, str]:
    """One BLAS thread; hashes, and so the order of sets, the same in every process."""
    return {**suites.tests_variables(made), "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def _start(command: Sequence[str | Path], env: Mapping[str, str], sink: IO[bytes]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, text=True, env=dict(env)
    )
