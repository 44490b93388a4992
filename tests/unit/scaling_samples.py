"""A scaling run whose figures are known, and workers that need no NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from ftnumpy.environment import Environment
from ftnumpy.scaling.beyond import Curve
from ftnumpy.scaling.findings import Findings, findings
from ftnumpy.scaling.latency import Latency
from ftnumpy.scaling.machine import Machine, Processor
from ftnumpy.scaling.series import CONTROL, PROCESSES, Launch, Sample, Series
from ftnumpy.scaling.workloads import Workload

# Enough of NumPy for a worker that only adds numbers.
NUMPY = """
import random as _random
import sys

__version__ = "0"
sys._is_gil_enabled = lambda: False


class random:
    default_rng = _random.Random


class asarray:
    def __init__(self, value):
        self.value = value

    def tobytes(self):
        return repr(self.value).encode()


class _Ones:
    def sum(self):
        return sum(1 for _ in range(50))


def array(value):
    return value


def broadcast_to(value, shape):
    return _Ones()
"""

SMALL = Workload(
    name="small",
    task="operators",
    about="adds",
    setup="x = rng.random()",
    step="return x + i, sum(range(50))",
)
WHOLE = Workload(
    name="whole",
    task="ufunc-chain",
    about="a program",
    setup="numbers = list(range(first, last))",
    step="return numbers[i - first] * 2",
    units=400,
)


def environment(folder: Path, name: str) -> Environment:
    """An environment in ``folder`` that runs this Python with that NumPy."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "numpy.py").write_text(NUMPY)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    made = SimpleNamespace(
        folder=folder,
        python=python,
        interpreter=SimpleNamespace(fingerprint=f"interpreter of {name}", tag=name),
        wheel=SimpleNamespace(fingerprint=f"wheel of {name}"),
    )
    return cast(Environment, made)


def machine(processors: int = 2) -> Machine:
    return Machine(
        processors=tuple(Processor(number=number, node=0, core=str(number)) for number in range(processors)),
        model="A processor",
        virtual=False,
        memory_gib=8.0,
        kernel="6.1",
    )


def series(
    workload: Workload,
    seconds: Callable[[str, int], float],
    *,
    after: str = "patched",
    launches: int = 2,
    rounds: int = 2,
    units: int = 100,
) -> Series:
    """``seconds`` says how long a mode takes with 1 and 2 workers; every launch is twice as slow as the one before."""
    return Series(
        workload=workload.name,
        task=workload.task,
        key="0" * 16,
        units=units,
        launches=tuple(
            Launch(
                started=f"2026-01-0{number + 1}T00:00:00Z",
                load=0.5 * number,
                stolen=0.01,
                samples=tuple(
                    Sample(
                        round=turn,
                        mode=mode,
                        workers=workers,
                        first=(number * rounds + turn) * units if workload.units else 0,
                        units=units if workload.units else units * workers,
                        seconds=(seconds(mode, workers) * 2**number,) * workers,
                    )
                    for turn in range(rounds)
                    for workers in (1, 2)
                    for mode in ("stock", after, PROCESSES, CONTROL)
                ),
            )
            for number in range(launches)
        ),
    )


def seconds(mode: str, workers: int) -> float:
    """With 2 workers each loses a fifth, which is the machine's own; each of stock loses three fifths."""
    alone = 0.5 if mode == "patched" else 1.0
    return alone if workers == 1 else alone * (2.5 if mode == "stock" else 1.25)


def whole_seconds(mode: str, workers: int) -> float:
    """The same of a program whose work the workers share."""
    return seconds(mode, workers) / workers


def sample(*, curves: bool = True, missing: tuple[str, ...] = ()) -> Findings:
    return findings(
        "nox -s scaling -- --launches 2",
        machine(),
        {"stock": "Python 3.13.15 (stock), NumPy 2.4.6", "patched": "Python 3.13.15 (ft1-c4), NumPy 2.4.6+ft1"},
        (1, 2),
        [SMALL, WHOLE],
        [series(SMALL, seconds), series(WHOLE, whole_seconds)],
        [
            Latency(
                workload="small",
                task="operators",
                variant=variant,
                workers=1,
                collecting=collecting,
                units=100,
                median=1500.0,
                p99=2500.0,
                max=250_000.0 if collecting else 3000.0,
                collections=7 if collecting else 0,
                collection_ms=12.5 if collecting else 0.0,
            )
            for variant in ("stock", "patched")
            for collecting in (False, True)
        ],
        [
            Curve(label="a model", variant=variant, cores=(1, 2, 4, 8), speedup=(1.0, 1.9, 3.5, most))
            for variant, most in (("stock", 4.0), ("patched", 7.0))
        ]
        if curves
        else [],
        missing,
    )
