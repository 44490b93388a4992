"""Run one pattern in this process, which may crash: ``trial.py NAME THREADS SECONDS [guarded]`` prints JSON.

``trial.py list`` prints what the patterns declare.
"""

from __future__ import annotations

import faulthandler
import json
import sys

import patterns

if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        rows = patterns.PATTERNS.values()
        print(json.dumps({row.name: [row.title, row.code, row.verdict, row.note] for row in rows}))
        sys.exit()
    name, threads, seconds, *guarded = sys.argv[1:]
    faulthandler.enable()
    # A hang ends with the tracebacks of all threads.
    faulthandler.dump_traceback_later(10 * float(seconds) + 120, exit=True)
    print(json.dumps(patterns.trial(name, int(threads), float(seconds), guarded == ["guarded"])))
