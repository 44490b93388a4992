"""Runs one command for a parent and ends its whole process group when the parent is gone, however that died.

``python guard.py COMMAND…``, started as leader of a process group with a pipe from the parent as standard input.  The
parent never writes; the pipe ends with it, even when it is killed and can end nothing itself.  Exits as the command
did.  Standard library only, and little of it: this starts before every command that the toolchain runs.
"""

import os
import resource
import signal
import subprocess
import sys
import threading

NOT_STARTED = 127  # a shell's exit status for it


def main() -> int:
    # The command can't outlive the group by ending its leader first: the guard waits for it.
    try:
        command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{sys.argv[1]} could not be started ({error.strerror})\n")
        return NOT_STARTED
    threading.Thread(target=_watch, daemon=True).start()
    status = command.wait()
    if status < 0:
        # Its core, if it was to leave one, lies there already.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _watch() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
