"""From dump and names to a census."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ftnumpy.census import count, dump, names
from ftnumpy.census.count import Subject
from ftnumpy.census.tally import Census, Frame, Line, Owner

LINE = 0x500000
SIN, COS, TYPE = LINE, LINE + 32, 0x700000
SUBJECT = Subject(workload="w", variant="stock", iterations=10, qemu="7.2", seconds=1.0)


def take(
    tmp_path: Path, accesses: str, *, types_at: dict[int, int] | None = None, extra: str = "", **found: Any
) -> Census:
    """A census of two threads.  ``accesses`` are the dump's rows; ``types_at`` puts words into the kept memory."""
    lines = {int(row.split()[2], 16) // 64 * 64 for row in accesses.splitlines()}
    rows = [f"line {thread} {line:x} 0 0 5" for line in lines for thread in (1, 2)]
    (tmp_path / "dump.0").write_text(
        "census 1 64 200\nthread 1 1 1000 0\nthread 2 1 3000 0\n"
        + "\n".join(rows)
        + f"\n{accesses}\n{extra}"
        + "context 1 0\ncontext 2 0\ncontext 1 1 400101\ncontext 2 1 400101\n"
        + "instruction 0 400010 1\ninstruction 1 400020 0\nend\n",
        encoding="ascii",
    )
    about = {"python": "3.13", "numpy": "2.4", "free_threaded": True, "maps": []}
    about |= {"types": [[TYPE, "ufunc"]], "things": [], "blocks": []} | found
    (tmp_path / "dump.names").write_text(json.dumps(about), encoding="utf-8")
    memory = b""
    for address, word in (types_at or {}).items():
        memory += address.to_bytes(8, "little") + (8).to_bytes(8, "little") + word.to_bytes(8, "little")
    (tmp_path / "dump.0.memory").write_bytes(memory)
    known = names.read_names(tmp_path / "dump.names")
    known.symbols.frames(())[0x400010] = (Frame(function="Py_DECREF", file="object.h", line=3),)
    known.symbols.frames(())[0x400020] = (Frame(function="store", file="a.c", line=7),)
    known.symbols.frames(())[0x400100] = (Frame(function="ufunc_call", file="ufunc.c", line=9),)
    return count.census(dump.read(tmp_path / "dump.0"), known, names.read_memory(tmp_path / "dump.0.memory"), SUBJECT)


def only(census: Census) -> Line:
    (line,) = census.lines
    return line


def test_figures_are_per_iteration_and_thread(tmp_path: Path) -> None:
    census = take(tmp_path, f"access 1 {LINE:x} 0 1 4 40\naccess 2 {LINE:x} 0 1 0 40\naccess 2 {LINE:x} 1 1 0 10")
    line = only(census)
    assert (line.locked, line.plain, line.reads, line.bursts) == (4.0, 0.5, 0.2, 0.5)
    assert (census.locked, census.plain) == (4.0, 0.5)
    assert census.instructions == 200.0
    assert (line.true_sharing, line.threads, line.address) == (True, 2, LINE)


def test_words_of_one_thread_each_are_false_sharing(tmp_path: Path) -> None:
    line = only(take(tmp_path, f"access 1 {LINE:x} 0 1 0 40\naccess 2 {LINE + 8:x} 0 1 0 40"))
    assert not line.true_sharing
    assert [(word.offset, word.threads) for word in line.words] == [(0, 1), (8, 1)]


def test_a_word_that_all_read_beside_one_that_one_writes_is_false_sharing(tmp_path: Path) -> None:
    rows = f"access 1 {LINE:x} 1 1 9 0\naccess 2 {LINE:x} 1 1 9 0\naccess 2 {LINE + 8:x} 1 1 0 9"
    assert not only(take(tmp_path, rows)).true_sharing


def test_a_live_object_gives_its_name_and_its_header_s_field(tmp_path: Path) -> None:
    things = [[SIN, 32, TYPE, "ufunc", "np.sin"], [COS, 32, TYPE, "ufunc", "np.cos"]]
    rows = f"access 1 {SIN + 16:x} 0 1 0 40\naccess 2 {COS + 16:x} 0 1 0 80"
    line = only(take(tmp_path, rows, things=things, types_at={SIN + 24: TYPE, COS + 24: TYPE}))
    assert line.name == "ufunc np.cos + ufunc np.sin"  # the busier first
    assert line.words[0].owner == Owner(kind="ufunc", name="np.sin", field="ob_ref_shared")


def test_an_object_that_was_not_there_at_the_dump_gives_no_name(tmp_path: Path) -> None:
    things = [[SIN, 32, TYPE, "ufunc", "np.sin"]]
    rows = f"access 1 {SIN + 16:x} 0 1 0 40\naccess 2 {SIN + 16:x} 0 1 0 40"
    line = only(take(tmp_path, rows, things=things, types_at={SIN + 24: 0xDEAD}))
    assert line.words[0].owner == Owner(kind="unknown", name="used by ufunc_call", field="")


def test_an_object_that_only_its_type_tells_is_called_after_its_user(tmp_path: Path) -> None:
    rows = f"access 1 {SIN + 16:x} 0 1 0 40\naccess 2 {SIN + 16:x} 0 1 0 40"
    assert only(take(tmp_path, rows, types_at={SIN + 24: TYPE})).name == "ufunc used by ufunc_call"


def test_a_block_is_called_after_the_object_that_points_to_it(tmp_path: Path) -> None:
    rows = f"access 1 {LINE + 48:x} 0 1 0 40\naccess 2 {LINE + 48:x} 0 1 0 40"
    line = only(take(tmp_path, rows, blocks=[[LINE + 32, "ufunc np.add +232"], [LINE + 56, "dict d +8"]]))
    assert line.words[0].owner == Owner(kind="block", name="of ufunc np.add +232", field="+16")


def test_sites_have_their_callers_and_the_busiest_writer_comes_first(tmp_path: Path) -> None:
    rows = f"access 1 {LINE:x} 1 0 0 10\naccess 2 {LINE:x} 0 1 0 30\naccess 1 {LINE:x} 0 1 2 30"
    sites = only(take(tmp_path, rows)).sites
    assert [(site.frames[0].function, site.locked, site.plain, site.reads) for site in sites] == [
        ("Py_DECREF", 3.0, 0.0, 0.1),
        ("store", 0.0, 0.5, 0.0),
    ]
    assert [frame.function for frame in sites[0].frames] == ["Py_DECREF", "ufunc_call"]


def test_system_calls_are_joined_by_kind_with_their_busiest_caller(tmp_path: Path) -> None:
    extra = "syscall 1 202 129 1 30\nsyscall 2 202 1 0 10\nsyscall 2 28 4 1 20\nsyscall 2 999 0 1 2\n"
    census = take(tmp_path, f"access 1 {LINE:x} 0 1 0 1\naccess 2 {LINE:x} 0 1 0 1", extra=extra.replace("129", "1"))
    assert [(call.name, call.detail, call.count) for call in census.syscalls] == [
        ("futex", "wake", 2.0),
        ("madvise", "dontneed", 1.0),
        ("number 999", "", 0.1),
    ]
    assert census.syscalls[0].frames == (Frame(function="ufunc_call", file="ufunc.c", line=9),)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("_Py_DecRefShared", "ufunc_call"),
        ("___pthread_rwlock_rdlock", "ufunc_call"),
        ("array_dealloc", "array_dealloc"),
    ],
)
def test_a_helper_is_no_user(tmp_path: Path, name: str, user: str) -> None:
    chain = (Frame(function=name, file="", line=0), Frame(function="ufunc_call", file="", line=0))
    assert count._user(chain) == user
