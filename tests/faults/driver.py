"""The toolchain's command line on a toy checkout: ``python driver.py CHECKOUT WORD…``.

TOY_HOLD may name a moment inside the toolchain itself: ``EVENT:TEXT`` is the first audit event of Python with that name
whose arguments hold TEXT.  There the run notes it like a phase and waits to be killed.  TOY_KILL is a number: the run
kills itself at that event of those that change something on disk or start a program.
"""

import functools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ftnumpy import __main__, settings

CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "shutil.copyfile", "subprocess.Popen"}


def changes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        mode, flags = arguments[1:]
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)) and mode != "r"
    return event in CHANGES


def watch(hold: str, kill: int) -> None:
    event_name, _, text = hold.partition(":")
    count = 0
    held = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count, held
        if text and not held and event == event_name and text in " ".join(map(str, arguments)):
            held = True
            with Path(os.environ["TOY"], "phases").open("a") as notes:
                notes.write(f"{hold}\n")
            time.sleep(600)
        if kill and changes(event, arguments):
            count += 1
            if count == kill:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


__main__.read_settings = functools.partial(settings.read_settings, root=Path(sys.argv[1]))
watch(os.environ.get("TOY_HOLD", ""), int(os.environ.get("TOY_KILL", "0")))
sys.exit(__main__.main(sys.argv[2:]))
