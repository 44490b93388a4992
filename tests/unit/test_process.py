from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ftnumpy import process
from ftnumpy.errors import CommandFailed
from ftnumpy.settings import ROOT


def python(program: str, log: Path, **options: object) -> None:
    process.run([sys.executable, "-c", program], what="the program", log=log, **options)


def gone(pid: int) -> bool:
    """Whether ``pid`` has ended within a second; a zombie that nobody collects counts as ended."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_log_has_the_command_and_both_streams_and_is_appended_to(tmp_path):
    log = tmp_path / "deep/run.log"
    python("import sys; print('to out', flush=True); print('to err', file=sys.stderr)", log)
    python("print('again')", log)
    text = log.read_text()
    assert text.index("$ ") < text.index("to out") < text.index("to err") < text.index("again")
    assert text.count("$ ") == 2


def test_folder_environment_and_no_input(tmp_path):
    program = (
        "import os, sys; print(os.getcwd(), dict(os.environ).get('A'), len(os.environ) < 5, sys.stdin.read() == '')"
    )
    python(program, tmp_path / "log", cwd=tmp_path, env={"A": "b"})
    assert process.last_lines(tmp_path / "log")[-1] == f"{tmp_path} b True True"


def test_failure_carries_status_log_and_last_lines(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(CommandFailed) as caught:
        python("for n in range(100): print('line', n)\nraise SystemExit(3)", log)
    error = caught.value
    assert error.reason == "exit status 3"
    assert error.log == log
    assert error.last_lines == tuple(f"line {n}" for n in range(100 - process.LAST_LINES, 100))
    for part in ("the program failed", "exit status 3", "| line 99", str(log)):
        assert part in str(error)
    assert "line 2\n" not in str(error)


def test_death_by_signal_is_named(tmp_path):
    with pytest.raises(CommandFailed, match="ended by signal 9"):
        python("import os; os.kill(os.getpid(), 9)", tmp_path / "log")


def test_command_that_does_not_exist(tmp_path):
    with pytest.raises(CommandFailed, match=r"no-such-tool could not be started \(No such file"):
        process.run(["no-such-tool"], what="x", log=tmp_path / "log")


CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_time_out_ends_the_whole_group(tmp_path):
    log = tmp_path / "log"
    start = time.monotonic()
    with pytest.raises(CommandFailed, match="ran past its"):
        python(CHILD, log, timeout=5)
    assert time.monotonic() - start < 40
    assert gone(int(process.last_lines(log)[-1]))


def test_interruption_ends_the_whole_group(tmp_path, monkeypatch):
    log = tmp_path / "log"

    def interrupted(*_: object) -> None:
        while not process.last_lines(log)[-1].isdigit():
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        python(CHILD, log)
    assert gone(int(process.last_lines(log)[-1]))


def test_own_process_group(tmp_path):
    python("import os; print('group', os.getpgid(0))", tmp_path / "log")
    assert process.last_lines(tmp_path / "log")[-1] not in ("", f"group {os.getpgid(0)}")


# Runs CHILD and is killed, which leaves it no time to end what it started.
KILLED = f"""
import sys, threading, time, os
from pathlib import Path
from ftnumpy import process
log = Path(sys.argv[1])
def kill():
    while not process.last_lines(log)[-1:] or not process.last_lines(log)[-1].isdigit():
        time.sleep(0.01)
    os.kill(os.getpid(), 9)
threading.Thread(target=kill).start()
process.run([sys.executable, "-c", {CHILD!r}], what="x", log=log)
"""


def test_a_killed_run_takes_the_whole_group_along(tmp_path):
    log = tmp_path / "log"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(log)], env=environment, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert gone(int(process.last_lines(log)[-1]))


def test_a_full_disk_is_named_when_its_log_can_say_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "NO_SPACE", 1 << 80)
    with pytest.raises(CommandFailed, match=r"exit status 3; no space is left in .*FTNUMPY_CACHE"):
        python("raise SystemExit(3)", tmp_path / "log")


def test_sign_of_life_without_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(process, "HEARTBEAT", 0.0)
    python("import time; time.sleep(0.8)", tmp_path / "log")
    assert "… the program, " in capsys.readouterr().out


def test_last_lines(tmp_path):
    assert process.last_lines(tmp_path / "none") == []
    (tmp_path / "log").write_bytes(b"a\nb\xff\nc\n")
    assert process.last_lines(tmp_path / "log", 2) == ["b\N{REPLACEMENT CHARACTER}", "c"]
