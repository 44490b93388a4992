"""Censuses made by hand, for the tests of what is made of them."""

from __future__ import annotations

from dataclasses import fields

from ftnumpy.census.report import Report
from ftnumpy.census.tally import Census, Frame, Line, Owner, Site, Syscall, Word
from ftnumpy.census.timing import (
    Call,
    Handover,
    Inputs,
    LineAt,
    LineCost,
    Native,
    Point,
    Prediction,
    Spread,
    Validation,
)

HANDLER = Owner(kind="PyCapsule", name="mem_handler", field="ob_ref_shared")
SIN = Owner(kind="ufunc", name="np.sin", field="ob_ref_shared")
LOCK = Owner(kind="block", name="PyArrayIdentityHash_New", field="+24")

INCREF = Frame(function="_Py_atomic_add_ssize", file="/src/Include/cpython/pyatomic_gcc.h", line=72)
GET_HANDLER = Frame(function="PyDataMem_GetHandler", file="/src/numpy/alloc.c", line=420)
NEW_ARRAY = Frame(function="PyArray_NewFromDescr_int", file="/src/numpy/ctors.c", line=810)
NO_DEBUG = Frame(function="pthread_rwlock_rdlock", file="/lib/libc.so.6", line=0)


def site(*frames: Frame, locked: float = 0, plain: float = 0, reads: float = 0) -> Site:
    return Site(frames=frames, locked=locked, plain=plain, reads=reads)


def line(
    *owners: tuple[Owner, float],
    sites: tuple[Site, ...] = (),
    plain: float = 0,
    true_sharing: bool = True,
    address: int = 0x7F00,
) -> Line:
    """A line with 8 bytes and so many locked writes for each of ``owners``."""
    words = tuple(
        Word(offset=8 * place, owner=owner, locked=locked, plain=plain, reads=2, threads=2)
        for place, (owner, locked) in enumerate(owners)
    )
    return Line(
        name=", ".join(str(owner) for owner, _ in owners),
        address=address,
        locked=sum(word.locked for word in words),
        plain=sum(word.plain for word in words),
        reads=sum(word.reads for word in words),
        bursts=3.5,
        true_sharing=true_sharing,
        threads=2,
        words=words,
        sites=sites,
    )


def census(*lines: Line, workload: str = "kernel", variant: str = "stock", iterations: int = 200) -> Census:
    return Census(
        workload=workload,
        variant=variant,
        python="3.13.15 experimental free-threading build",
        numpy="2.4.6",
        threads=2,
        iterations=iterations,
        instructions=70123.5,
        lines=lines,
        syscalls=(Syscall(name="futex", detail="FUTEX_WAKE", count=0.25, frames=(GET_HANDLER,)),),
        qemu="7.2.22",
        seconds=12.3,
    )


HANDLER_LINE = line((HANDLER, 16), sites=(site(INCREF, GET_HANDLER, NEW_ARRAY, locked=16, reads=1),))
SIN_LINE = line((SIN, 4), sites=(site(INCREF, GET_HANDLER, locked=4),), address=0x7F40)
LOCK_LINE = line((LOCK, 2), sites=(site(NO_DEBUG, locked=2),), true_sharing=False, plain=1, address=0x7F80)
STOCK = census(HANDLER_LINE, SIN_LINE, LOCK_LINE)
PATCHED = census(SIN_LINE, variant="patched")

NATIVE = Native(
    threads=2,
    iterations=5000,
    rounds=3,
    wall_ns=Spread.of([9000, 9500, 9900]),
    cpu_ns=Spread.of([8800]),
    minor_faults=Spread.of([0.01]),
    major_faults=Spread.of([0]),
    voluntary_switches=Spread.of([0.3]),
    forced_switches=Spread.of([0.002]),
    tracer="strace",
    traced_iterations=500,
    calls=(
        Call(name="futex", detail="FUTEX_WAIT_PRIVATE", count=0.4),
        Call(name="madvise", detail="MADV_DONTNEED", count=0.01),
    ),
    missing=("where the calls come from: bpftrace needs root",),
)
PREDICTION = Prediction(
    label="a model",
    inputs=Inputs(**{field.name: 55.5 if field.name == "handover_ns" else 7 for field in fields(Inputs)}),
    points=(
        Point(cores=1, iterations_per_second=100_000, speedup=1, wait_ns=0, transfers=0),
        Point(cores=32, iterations_per_second=900_000, speedup=9, wait_ns=25_000.7, transfers=40),
    ),
    lines=(
        LineCost(
            address=0x7F00,
            name="PyCapsule mem_handler",
            true_sharing=True,
            at=(
                LineAt(cores=1, wait_ns=0, transfers=0, busy=0),
                LineAt(cores=32, wait_ns=20_000, transfers=16, busy=0.875),
            ),
            ceiling=900_000,
        ),
    ),
    handover=Handover(
        **{
            field.name: {"tuple[int, ...]": (0, 1), "Spread": Spread.of([5.5])}.get(field.type, 7)
            for field in fields(Handover)
        }
    ),
    validation=Validation(
        predicted=1.5, measured=Spread.of([1.6]), workload=Spread.of([1.68]), control=Spread.of([1.05]), rounds=7
    ),
    missing=(),
)
REPORT = Report(census=STOCK, native=None, prediction=None)
REPORT_WITH_ALL = Report(census=STOCK, native=NATIVE, prediction=PREDICTION)
