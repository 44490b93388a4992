"""Censuses made by hand, for the tests of what is made of them."""

from __future__ import annotations

from ftnumpy.census.tally import Census, Frame, Line, Owner, Site, Syscall, Word

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
