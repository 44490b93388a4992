"""Programs with a mistake that the sanitizer must report: unless it does, no report means nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ftnumpy.environment import Environment
from ftnumpy.errors import PrerequisiteError
from ftnumpy.sanitizers.reports import read_folder

SECONDS = 300.0

# One thread stores into all of an array, the other into one element meanwhile.  Between two stores each counts
# references to the array, which puts the threads in order for ThreadSanitizer; but one thread's store takes many of the
# other's.
RACE = """
import threading
import numpy as np
array = np.zeros(500_000)
def fill():
    for _ in range(20):
        array[:] = 1
filler = threading.Thread(target=fill)
filler.start()
while filler.is_alive():
    array[250_000] = 2
"""
# A sum that has no value in C, then a view that reaches beyond the memory of its array.
MISTAKES = """
import numpy as np
np.full(10, 2**63 - 1) + 1
np.lib.stride_tricks.as_strided(np.zeros(1), (1000,), (8,)).copy()
"""
PROGRAMS = {"tsan": RACE, "asan": MISTAKES}

# The kinds of report that must be among those of the program.
KINDS = {"tsan": ("data race",), "asan": ("signed integer overflow", "heap-buffer-overflow")}


def prove(made: Environment, tool: str, variables: Mapping[str, str], folder: Path) -> str:
    """Run the program with the environment ``variables``, which send reports into ``folder``; returns what was found.

    Raises `PrerequisiteError` when a kind of report is missing.
    """
    done = subprocess.run(
        [made.python, "-I", "-c", PROGRAMS[tool]],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    kinds = {report.kind for report in read_folder(folder)}
    missing = [kind for kind in KINDS[tool] if not any(re.match(re.escape(kind), found) for found in kinds)]
    if missing:
        raise PrerequisiteError(
            f"the sanitizer does not report a mistake that was made for it to find ({', '.join(missing)}), so no "
            f"report would mean nothing here. It reported: {', '.join(sorted(kinds)) or 'nothing'}\n"
            f"{done.stderr[-2000:]}"
        )
    return f"reported as it should: {', '.join(KINDS[tool])}"
