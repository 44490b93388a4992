"""Runs benchmarks of asv's suite on request: in a variant's interpreter, with asv_runner and NumPy beside it.

Started with the suite's folder, it reads one JSON object a line, ``{"benchmark": "cost.Scalars.time_add", "number":
1000}``, and answers with the seconds that so many calls took.  Number 0 is for benchmarks whose code wants a fresh
interpreter (asv's timeraw): it runs that code once, in this process.

Every call of ``os.getpgrp`` is a mark for who counts instructions: one right before what is timed, one right after.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from typing import Any

from asv_runner.discovery import get_benchmark_from_name

benchmark = functools.cache(get_benchmark_from_name)


@functools.cache
def timer(root: str, name: str) -> Any:
    """A warm timer of the benchmark."""
    found = benchmark(root, name)._get_timer(*benchmark(root, name)._current_params)
    found.timeit(1)
    return found


def repeated(root: str, name: str, number: int) -> float:
    found = timer(root, name)
    os.getpgrp()
    seconds: float = found.timeit(number)
    os.getpgrp()
    return seconds


def once(root: str, name: str) -> float:
    code = compile(benchmark(root, name).func(), name, "exec")
    start = time.perf_counter()
    os.getpgrp()
    exec(code, {})
    os.getpgrp()
    return time.perf_counter() - start


def main(root: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        name, number = request["benchmark"], request["number"]
        print(json.dumps(repeated(root, name, number) if number else once(root, name)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
