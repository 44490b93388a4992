"""The system calls inside the windows of a native run, counted by whatever tracer this machine allows."""

from __future__ import annotations

import json
import mmap
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import process
from ftnumpy.errors import CommandFailed, FtnumpyError
from ftnumpy.settings import Settings

# What opens and closes a window, as in plugin/census.c: lseek(any descriptor, MARK | operation, any).
MARK = 0x0066746E756D7000
BEGIN, END = 1, 2
TIMEOUT = 300.0  # seconds

# linux/futex.h
FUTEX = {
    0: "FUTEX_WAIT",
    1: "FUTEX_WAKE",
    3: "FUTEX_REQUEUE",
    4: "FUTEX_CMP_REQUEUE",
    5: "FUTEX_WAKE_OP",
    6: "FUTEX_LOCK_PI",
    7: "FUTEX_UNLOCK_PI",
    8: "FUTEX_TRYLOCK_PI",
    9: "FUTEX_WAIT_BITSET",
    10: "FUTEX_WAKE_BITSET",
    11: "FUTEX_WAIT_REQUEUE_PI",
    12: "FUTEX_CMP_REQUEUE_PI",
    13: "FUTEX_LOCK_PI2",
}
FUTEX_COMMAND = 0x7F  # without the flags for private futexes and for the clock


@dataclass(frozen=True, kw_only=True)
class Traced:
    """``counts`` of (name, detail), by all threads together; ``tracer`` is empty when none could run."""

    tracer: str
    counts: Mapping[tuple[str, str], int]
    missing: tuple[str, ...]


def trace(
    command: Sequence[str | Path], environment: Mapping[str, str], settings: Settings, log: Path, *, windows: bool
) -> Traced:
    """Run ``command`` under bpftrace, which disturbs little but wants root, or else under strace, which stops every
    thread at each of its calls.

    Calls count inside the windows that threads open and close, or all of them without ``windows``.  A child process
    counts under strace only.
    """
    missing: list[str] = []
    for name, run, lacking in (("bpftrace", _bpftrace, _lacks_bpftrace()), ("strace", _strace, _lacks("strace"))):
        if not lacking:
            try:
                counts = run(command, environment, settings, log, windows)
                return Traced(tracer=name, counts=counts, missing=tuple(missing))
            except CommandFailed as error:
                lacking = f"{name} failed ({error.reason}; log: {log})"
        missing.append(f"system calls by {name}: {lacking}")
    return Traced(tracer="", counts={}, missing=tuple(missing))


def _lacks(program: str) -> str:
    return "" if shutil.which(program) else f"install {program}"


def _lacks_bpftrace() -> str:
    return _lacks("bpftrace") or ("" if os.geteuid() == 0 else "only root may; it would disturb the threads less")


def _strace(
    command: Sequence[str | Path], environment: Mapping[str, str], settings: Settings, log: Path, windows: bool
) -> Counter[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder) / "calls"
        process.run(
            ["strace", "-f", "-qqq", "-e", "signal=none", "-o", calls, *command],
            what="counting system calls with strace",
            log=log,
            env=environment,
            timeout=TIMEOUT,
        )
        with calls.open(encoding="utf-8", errors="replace") as lines:
            return read_strace(lines, windows=windows)


def read_strace(lines: Iterable[str], *, windows: bool) -> Counter[tuple[str, str]]:
    """Calls by (name, detail), inside the windows or all, from what ``strace -f`` writes."""
    counts: Counter[tuple[str, str]] = Counter()
    inside: set[str] = set()
    for line in lines:
        # A call that another thread's interrupts has a second line, "<... name resumed>", which doesn't match.
        match = re.match(r"(\d+) +(\w+)\((.*)", line)
        if match is None:
            continue
        thread, name, arguments = match.groups()
        operation = _operation(arguments) if name == "lseek" else None
        if operation == BEGIN:
            inside.add(thread)
        elif operation == END:
            inside.discard(thread)
        elif operation is None and (thread in inside or not windows):
            counts[name, _strace_detail(name, arguments)] += 1
    return counts


def _operation(arguments: str) -> int | None:
    """The operation of a mark; None for the other calls of lseek."""
    match = re.match(r"-?\d+, (\d+)", arguments)
    offset = int(match[1]) if match else 0
    return offset & 0xFF if offset & ~0xFF == MARK else None


def _strace_detail(name: str, arguments: str) -> str:
    if name == "futex":
        match = re.search(r"FUTEX_\w+", arguments)
        return match[0].removesuffix("_PRIVATE") if match else ""
    if name == "madvise":
        match = re.search(r"MADV_\w+", arguments)
        return match[0] if match else ""
    return ""


def _bpftrace(
    command: Sequence[str | Path], environment: Mapping[str, str], settings: Settings, log: Path, windows: bool
) -> Counter[tuple[str, str]]:
    numbers = system_calls(settings)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # bpftrace takes a command apart at blanks, so it gets one without any in its arguments.
        script = folder / "run"
        script.write_text(f"exec {shlex.join(map(str, command))}\n", encoding="utf-8")
        process.run(
            [
                "bpftrace",
                "-q",
                "-f",
                "json",
                "-o",
                folder / "counts",
                "-e",
                _probe(numbers, windows),
                "-c",
                f"/bin/sh {script}",
            ],
            what="counting system calls with bpftrace",
            log=log,
            env=environment,
            timeout=TIMEOUT,
        )
        with (folder / "counts").open(encoding="utf-8") as lines:
            return read_bpftrace(lines, {number: name for name, number in numbers.items()})


def _probe(numbers: Mapping[str, int], windows: bool) -> str:
    return f"""
tracepoint:raw_syscalls:sys_enter /pid == cpid/ {{
    if (args->id == {numbers["lseek"]} && args->args[1] >> 8 == {MARK >> 8}) {{
        if ((args->args[1] & 255) == {BEGIN}) {{ @inside[tid] = 1; }}
        if ((args->args[1] & 255) == {END}) {{ delete(@inside[tid]); }}
    }} else if ({"@inside[tid]" if windows else "1"}) {{
        $detail = (uint64)0;
        if (args->id == {numbers["futex"]}) {{ $detail = args->args[1] & {FUTEX_COMMAND}; }}
        if (args->id == {numbers["madvise"]}) {{ $detail = args->args[2]; }}
        @calls[args->id, $detail] = count();
    }}
}}
END {{ clear(@inside); }}"""


def read_bpftrace(lines: Iterable[str], names: Mapping[int, str]) -> Counter[tuple[str, str]]:
    """Calls by (name, detail), from the JSON that bpftrace writes at its end; ``names`` of the calls by number."""
    advice = {value: name for name, value in vars(mmap).items() if name.startswith("MADV_")}
    counts: Counter[tuple[str, str]] = Counter()
    for line in lines:
        entry = json.loads(line) if line.strip() else {}
        for key, count in entry.get("data", {}).get("@calls", {}).items() if entry.get("type") == "map" else ():
            number, detail = map(int, key.split(","))
            name = names.get(number, str(number))
            details = {"futex": FUTEX, "madvise": advice}.get(name, {0: ""})
            counts[name, details.get(detail, str(detail))] += count
    return counts


def system_calls(settings: Settings) -> dict[str, int]:
    """The numbers of this machine's system calls by name, as its C headers have them."""
    answer = subprocess.run(
        [settings.cc, "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", answer.stdout)}
    if "futex" not in found:
        raise FtnumpyError(f"{settings.cc} finds no sys/syscall.h; install the C library's headers: {answer.stderr}")
    return found
