"""What the census's model says of the article's program on more cores than this machine has: a model, not a figure."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.census import dump, handover, model, native, report, runner
from ftnumpy.census.workloads import Workload
from ftnumpy.environment import Environment
from ftnumpy.scaling.workloads import ELEMENTS
from ftnumpy.settings import Settings

# One iteration of the article's kernel on one of its arrays.
KERNEL = Workload(
    name="article-kernel",
    setup=f"import numpy as np\nx = np.linspace(0.0, 1.0, {ELEMENTS})",
    statement="np.sin(np.cos(np.sin(np.cos(x + i)))).sum()",
)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The model's ``speedup`` over one core, by number of ``cores``, for threads of ``variant``."""

    label: str
    variant: str
    cores: tuple[int, ...]
    speedup: tuple[float, ...]


def curve(variant: str, made: Environment, folder: Path, settings: Settings, log: Path) -> Curve:
    """The model's curve for ``variant``; made once per build and kept in ``folder``.

    Raises `PrerequisiteError` without QEMU or a compiler, `handover.NotMeasurable` on a single processor, and
    `CommandFailed` when the census fails.
    """
    kept = folder / f"model-{made.interpreter.fingerprint[:8]}-{made.wheel.fingerprint[:8]}.json"
    if kept.exists():
        known: Curve = report.read(Curve, json.loads(kept.read_text(encoding="utf-8")))
        return known
    (taken,) = runner.take(
        [KERNEL],
        [],
        python=made.python,
        variant=variant,
        threads=2,
        iterations=None,
        trace=model.TRACED,
        settings=settings,
        folder=log.parent / f"model-{variant}",
        log=log,
    )
    times = native.take_times(KERNEL, made.python, threads=2, settings=settings, log=log)
    cost = handover.measure(settings, log)
    found = model.predict(taken.census, dump.read(taken.dump), times, cost, settings=settings, log=log)
    made_of = Curve(
        label=found.label,
        variant=variant,
        cores=tuple(point.cores for point in found.points),
        speedup=tuple(point.speedup for point in found.points),
    )
    report.write(kept, json.dumps(dataclasses.asdict(made_of)) + "\n")
    return made_of
