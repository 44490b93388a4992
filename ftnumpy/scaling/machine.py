"""The machine that runs are made on: its processors, which of them are used, and what else a reader must know."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.errors import UsageError

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True, kw_only=True)
class Processor:
    """One of the system's: its ``number``, the NUMA ``node`` that it belongs to, and its physical ``core``, named by
    the processors that share it."""

    number: int
    node: int
    core: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """``processors`` are those that we may use, the ones to use first in front: see `ordered`."""

    processors: tuple[Processor, ...]
    model: str
    virtual: bool  # a guest of a hypervisor: processors may be threads of one core, and neighbours take time
    memory_gib: float
    kernel: str

    def __str__(self) -> str:
        count = len(self.processors)
        cores = len({processor.core for processor in self.processors})
        nodes = len({processor.node for processor in self.processors})
        return (
            f"{self.model}, {count} {_plural('processor', count)} on {cores} {_plural('core', cores)} of "
            f"{nodes} NUMA {_plural('node', nodes)}{', virtual' if self.virtual else ''}, "
            f"{self.memory_gib:.0f} GiB, Linux {self.kernel}"
        )


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def look(system: Path = SYSTEM, cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """The machine that this runs on, as far as ``system`` and ``cpuinfo`` tell."""
    lines = _text(cpuinfo).splitlines()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    allowed = sorted(os.sched_getaffinity(0))
    return Machine(
        processors=ordered([_processor(system, number) for number in allowed]),
        model=said.get("model name") or platform.machine(),
        virtual="hypervisor" in said.get("flags", "").split(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        kernel=platform.release(),
    )


def _processor(system: Path, number: int) -> Processor:
    folder = system / "cpu" / f"cpu{number}"
    nodes = [int(path.name.removeprefix("node")) for path in folder.glob("node[0-9]*")]
    siblings = _text(folder / "topology" / "thread_siblings_list").strip()
    return Processor(number=number, node=nodes[0] if nodes else 0, core=siblings or str(number))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def ordered(processors: Sequence[Processor]) -> tuple[Processor, ...]:
    """``processors`` in the order in which to use them: physical cores before their second threads, the node with the
    most cores before the others, so that as few nodes as possible are used and no core twice before all are used."""
    firsts: dict[str, Processor] = {}
    for processor in processors:
        firsts.setdefault(processor.core, processor)
    cores = list(firsts.values())
    sizes = {node: sum(core.node == node for core in cores) for node in {core.node for core in cores}}

    def rank(processor: Processor) -> tuple[bool, int, int, int]:
        second = firsts[processor.core] is not processor
        return second, -sizes[processor.node], processor.node, processor.number

    return tuple(sorted(processors, key=rank))


def read_workers(text: str | None, processors: int) -> tuple[int, ...]:
    """The numbers of workers in ``text``, such as ``1,2,4``, in rising order; 1 to ``processors`` when it is None.

    1 is always among them, because every other number is compared with it.  Raises `UsageError` for what can't be
    measured here.
    """
    if text is None:
        return tuple(range(1, processors + 1))
    try:
        counts = {int(word) for word in text.split(",")}
    except ValueError:
        raise UsageError(f"--workers {text} is not a list of numbers; give one such as 1,2,4") from None
    wrong = [count for count in sorted(counts) if not 1 <= count <= processors]
    if wrong:
        raise UsageError(
            f"{wrong[0]} workers can't be measured here; each has a processor of its own, and this machine "
            f"gives us {processors}: give numbers from 1 to {processors}"
        )
    return tuple(sorted(counts | {1}))


def steal_seconds(stat: Path = Path("/proc/stat")) -> float:
    """Time since boot that a hypervisor gave to others while this machine could have run, over all processors; 0 where
    nobody says."""
    fields = _text(stat).partition("\n")[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0
