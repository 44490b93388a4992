"""Do a workload's units over and over, for a profiler that watches: runs in a variant's interpreter, with NumPy.

Usage: worker.py JOB, a JSON file with ``program`` (as `ftnumpy.scaling.workloads.program` makes it), ``threads``,
``units`` (after so many it starts again with the first), ``seconds``, and ``pid``, the file that is to get the number
of this process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def repeat(step: Callable[[int], Any], units: int, end: float) -> None:
    """The frame that `ftnumpy.flames.stacks` looks for: what runs below it is the workload."""
    while True:
        for i in range(units):
            step(i)
            if time.monotonic() > end:
                return


def main(job: dict[str, Any]) -> None:
    Path(job["pid"]).write_text(str(os.getpid()), encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(job["program"], "<workload>", "exec"), namespace)
    ready = threading.Barrier(job["threads"])
    errors: list[str] = []

    def work(seed: int) -> None:
        try:
            step = namespace["make"](seed, 0, job["units"])
            ready.wait()
            repeat(step, job["units"], time.monotonic() + job["seconds"])
        except BaseException:
            errors.append(traceback.format_exc())
            ready.abort()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(job["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit("a thread failed:\n" + errors[0])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
