"""What a native run and the model add to a census, as data: optional sections of its report.

The census counts and is exact; what stands here comes from a clock, from the kernel's counters, or from a model, and
says which.  Every figure "per iteration" is per iteration of the workload and per thread, as in `tally`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median and quartiles of several measurements of one thing."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one measurement; of one, all three are that one."""
        if len(values) == 1:
            return cls(median=values[0], low=values[0], high=values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median=median, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A system call inside the windows of a native run; ``detail`` as in `tally.Syscall`."""

    name: str
    detail: str
    count: float  # per iteration


@dataclass(frozen=True, kw_only=True)
class Native:
    """A workload on the machine itself, without QEMU.

    Times, faults and switches are the kernel's own (``getrusage``).  System calls come from a second run under
    ``tracer`` (``bpftrace`` or ``strace``; empty when neither could run, and then ``calls`` is empty too), which may
    make threads wait where they would not have and the other way round: futex waits are those of that run.
    """

    threads: int
    iterations: int  # per thread, in the run for times, faults and switches
    rounds: int  # processes that were run for them
    wall_ns: Spread  # per iteration, less what a thread waited for a processor that others had
    cpu_ns: Spread  # per iteration, user and system
    minor_faults: Spread  # per iteration
    major_faults: Spread  # per iteration: those that waited for a disk
    voluntary_switches: Spread  # per iteration: the thread waited, such as in a futex
    forced_switches: Spread  # per iteration: the kernel gave the core to another
    tracer: str
    traced_iterations: int  # per thread, in the run for system calls
    calls: tuple[Call, ...]  # most frequent first
    missing: tuple[str, ...]  # what could not be had on this machine, and what would give it

    @property
    def futex_waits(self) -> float:
        """Futex calls that wait, per iteration, in the traced run."""
        return sum(call.count for call in self.calls if call.name == "futex" and call.detail.startswith("FUTEX_WAIT"))


@dataclass(frozen=True, kw_only=True)
class Handover:
    """What it costs to move a cache line between ``cpus``, two of this machine's, in nanoseconds.

    ``handover`` is what a locked add to a line that the other core wrote last takes longer than one to an own line,
    when the core does nothing else meanwhile.  ``ahead`` is how many instructions may lie between two such adds for
    their hand-overs to overlap when it may.  ``own_add`` is a locked add to a line that the core has, again and again.
    ``contended_add`` is the time per add when both cores do that to one line: a core that has the line may add several
    times before it must give it up, so this can be less than a hand-over.  ``one_way`` is half a round trip of a word
    that one core writes and the other waits for.
    """

    cpus: tuple[int, ...]
    handover: Spread
    one_way: Spread
    own_add: Spread
    contended_add: Spread
    ahead: int


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that a prediction is made of."""

    handover_ns: float  # from one core's write of a line to the next core having it
    hold_ns: float  # how long a core keeps a line at least that it got for writing
    keep_ns: float  # how long a core may go on using a line that another has asked for
    ahead: int  # instructions that a core begins while it waits for one
    ns_per_instruction: float  # of one thread alone, all its costs but those of sharing
    instructions: float  # per iteration
    iterations: int  # per trace
    traces: int  # threads of the census whose traces are replayed, by turns when there are more cores
    accesses: int  # in the traces, to shared written lines
    lines: int  # shared written lines
    passes: int  # how often the first core to finish replays its trace


@dataclass(frozen=True, kw_only=True)
class Point:
    """The model at ``cores`` cores with one thread each."""

    cores: int
    iterations_per_second: float  # of all cores
    speedup: float  # over one core
    wait_ns: float  # per iteration, by which lines hold a core up
    transfers: float  # owner changes per iteration


@dataclass(frozen=True, kw_only=True)
class LineAt:
    """What one line costs at ``cores`` cores."""

    cores: int
    wait_ns: float  # per iteration, by which this line holds a core up
    transfers: float  # owner changes per iteration
    busy: float  # share of the time in which the line is under way or held, 0 to 1


@dataclass(frozen=True, kw_only=True)
class LineCost:
    """What one shared line costs in the model.

    ``ceiling`` is the most iterations per second that all cores together can reach while the line changes its owner as
    often per iteration as it does at the largest number of cores; 0 when it doesn't move.
    """

    address: int
    name: str  # `tally.Line.name`, or the address when the census doesn't name it
    true_sharing: bool
    at: tuple[LineAt, ...]  # by cores
    ceiling: float


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The model at 2 threads beside the clock.

    Each is the time of an iteration with 2 threads over that with 1.  ``control`` is the same for a loop that only
    computes in registers: more than 1 when the two cores share a physical one, or when the machine is busy.
    ``measured`` is the workload's ratio over the control's of the same round.
    """

    predicted: float
    measured: Spread
    workload: Spread
    control: Spread
    rounds: int

    @property
    def off(self) -> float:
        """By how much the prediction differs from the measurement: 0.1 is 10% too slow."""
        return self.predicted / self.measured.median - 1


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model, and no more than a model, says about more cores than this machine may have."""

    label: str  # 'a model'
    inputs: Inputs
    points: tuple[Point, ...]  # by cores
    lines: tuple[LineCost, ...]  # most waiting at the largest number of cores first
    handover: Handover
    validation: Validation | None
    missing: tuple[str, ...]  # what could not be measured, and what would give it
