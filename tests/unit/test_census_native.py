"""Native runs: windows and their means, what tracers write, and which processors a line is moved between."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ftnumpy.census import handover, native, tracing
from ftnumpy.census.workloads import Workload
from ftnumpy.errors import CommandFailed, FtnumpyError
from ftnumpy.settings import Settings, read_settings

LOOP = Workload(name="loop", setup="x = 1", statement="x + i")
MARK = tracing.MARK


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"PATH": os.environ["PATH"], "FTNUMPY_CACHE": str(tmp_path / "cache")})


@pytest.fixture
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that has no second one; what is asked for is not done."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: None)


@pytest.mark.usefixtures("one_processor")
def test_with_one_processor_a_hand_over_is_not_measurable(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(handover.NotMeasurable, match="not measurable with one processor"):
        handover.measure(settings, tmp_path / "log")


@pytest.mark.usefixtures("one_processor")
def test_with_one_processor_there_are_times_without_a_control(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "SECONDS", 0.001)
    monkeypatch.setattr(native, "ROUNDS", 2)
    found = native.take_times(
        LOOP, Path(sys.executable), threads=3, settings=settings, log=tmp_path / "log", launches=1
    )
    assert {threads: len(samples) for threads, samples in found.samples.items()} == {1: 2, 2: 2, 3: 2}
    assert found.controls == ()
    assert found.iterations > 1
    assert all(sample.wall_ns > 0 and sample.cpu_ns > 0 for sample in found.samples[3])


def test_the_measurement_itself_refuses_one_processor(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(FtnumpyError, match="not measurable: a line can't move between core 3 and itself"):
        handover._ask(settings, tmp_path / "log", "costs", (3, 3), "1")


def test_the_pair_shares_no_physical_core_where_there_is_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cpu, siblings in {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}.items():
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{siblings}\n", encoding="ascii")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert handover.pair(tmp_path) == (0, 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3})
    assert handover.pair(tmp_path) == (2, 3)
    # Where the machine doesn't say, they are taken to be different ones.
    assert handover.pair(tmp_path / "nothing") == (2, 3)


def test_adds_are_near_up_to_the_last_distance_that_costs_clearly_less() -> None:
    near = {100: [20.0, 21.0, 500.0], 200: [38.0, 38.0, 38.0], 300: [54.0, 53.0, 55.0], 400: [71.0, 72.0, 73.0]}
    assert handover.ahead(near, [72.0, 71.0, 1000.0]) == 300
    assert handover.ahead({100: [70.0]}, [72.0]) == 0


def test_a_sample_is_the_mean_over_threads_per_iteration() -> None:
    found = native.mean([[1000, 100, 0, 90, 10, 0, 4, 2], [1020, 100, 20, 80, 30, 2, 0, 0]], iterations=10)
    assert (found.wall_ns, found.queued_ns, found.cpu_ns) == (10, 1, 8.5)
    assert (found.minor_faults, found.major_faults, found.voluntary_switches, found.forced_switches) == (
        2,
        0.1,
        0.2,
        0.1,
    )
    # Both were open from 1020 to 1100.
    assert found.together == 0.8
    assert native.mean([[0, 10, 0, 9, 0, 0, 0, 0], [50, 10, 0, 9, 0, 0, 0, 0]], iterations=1).together == 0


def test_a_workload_that_fails_is_an_error_with_its_last_lines(settings: Settings, tmp_path: Path) -> None:
    broken = Workload(name="broken", setup="", statement="no_such_name")
    with pytest.raises(CommandFailed, match=r"(?s)native run of broken.*NameError.*no_such_name"):
        native.take_times(broken, Path(sys.executable), threads=2, settings=settings, log=tmp_path / "log")


def test_strace_counts_inside_the_windows_only() -> None:
    written = f"""\
10 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 0
11 lseek(3, {MARK | 1}, SEEK_SET) = {MARK | 1}
11 futex(0x1, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY <unfinished ...>
10 lseek(5, 513, SEEK_SET) = 513
10 madvise(0x7f0000000000, 4096, MADV_DONTNEED) = 0
11 <... futex resumed>) = 0
11 madvise(0x7f0000000000, 4096, MADV_DONTNEED) = 0
11 lseek(3, 0, SEEK_SET) = 0
12 lseek(4, {MARK | 1}, SEEK_SET) = {MARK | 1}
12 sched_yield() = 0
11 sched_yield() = 0
11 lseek(3, {MARK | 2}, SEEK_SET) = {MARK | 2}
11 munmap(0x7f0000000000, 4096) = 0
12 lseek(4, {MARK | 2}, SEEK_SET) = {MARK | 2}
12 +++ exited with 0 +++
""".splitlines()
    inside = {
        ("futex", "FUTEX_WAIT_BITSET"): 1,
        ("madvise", "MADV_DONTNEED"): 1,
        ("lseek", ""): 1,
        ("sched_yield", ""): 2,
    }
    assert tracing.read_strace(written, windows=True) == inside
    everything = tracing.read_strace(written, windows=False)
    assert (everything["futex", "FUTEX_WAKE"], everything["madvise", "MADV_DONTNEED"]) == (1, 2)
    assert everything["munmap", ""] == 1
    assert everything["lseek", ""] == 2


def test_what_bpftrace_writes_gets_names() -> None:
    written = [
        json.dumps({"type": "attached_probes", "data": {"probes": 2}}),
        "",
        json.dumps({"type": "map", "data": {"@inside": {}}}),
        json.dumps({"type": "map", "data": {"@calls": {"202,9": 5, "28,4": 2, "24,0": 7, "999,0": 1, "202,99": 1}}}),
    ]
    assert tracing.read_bpftrace(written, {202: "futex", 28: "madvise", 24: "sched_yield"}) == {
        ("futex", "FUTEX_WAIT_BITSET"): 5,
        ("futex", "99"): 1,
        ("madvise", "MADV_DONTNEED"): 2,
        ("sched_yield", ""): 7,
        ("999", ""): 1,
    }


def test_numbers_of_system_calls_come_from_the_headers(settings: Settings) -> None:
    found = tracing.system_calls(settings)
    assert {"futex", "madvise", "lseek", "mmap"} <= set(found)
    assert len(set(found.values())) == len(found)


def test_without_headers_the_error_says_what_to_install(settings: Settings, tmp_path: Path) -> None:
    silent = tmp_path / "cc"
    silent.write_text("#!/bin/sh\n", encoding="ascii")
    silent.chmod(0o755)
    lacking = read_settings({"PATH": os.environ["PATH"], "FTNUMPY_CACHE": str(tmp_path), "CC": str(silent)})
    with pytest.raises(FtnumpyError, match="install the C library's headers"):
        tracing.system_calls(lacking)


def test_without_a_tracer_it_is_said_what_would_help(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = tracing.trace(["true"], {}, settings, tmp_path / "log", windows=True)
    assert (found.tracer, found.counts) == ("", {})
    assert found.missing == (
        "system calls by bpftrace: install bpftrace",
        "system calls by strace: install strace",
    )


def test_a_tracer_that_fails_gives_way_to_the_next(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A strace that says what it would have seen, and a bpftrace that may not.
    for name, body in {"bpftrace": "exit 3", "strace": 'echo "1 sched_yield() = 0" > "$6"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = tracing.trace(["true"], dict(os.environ), settings, tmp_path / "log", windows=False)
    assert (found.tracer, found.counts) == ("strace", {("sched_yield", ""): 1})
    assert len(found.missing) == 1
    assert "bpftrace failed (exit status 3" in found.missing[0]


def test_a_count_divides_by_threads_and_iterations(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {("futex", "FUTEX_WAIT_BITSET"): 20, ("madvise", "MADV_DONTNEED"): 5}
    traced = tracing.Traced(tracer="strace", counts=counts, missing=("something",))
    monkeypatch.setattr(tracing, "trace", lambda *_, **__: traced)
    samples = tuple(native.mean([[0, 100 * k + 50, 50, 90 * k, 10, 0, 4, 2]], iterations=10) for k in (1, 2, 3))
    times = native.Times(iterations=10, samples={2: samples}, controls=())
    found = native.count(LOOP, Path(sys.executable), times, threads=2, settings=settings, log=tmp_path / "log")
    assert [(call.name, call.count) for call in found.calls] == [("futex", 1.0), ("madvise", 0.25)]
    assert found.futex_waits == 1.0
    assert (found.wall_ns.median, found.rounds, found.iterations, found.traced_iterations) == (20, 3, 10, 10)
    assert (found.tracer, found.missing) == ("strace", ("something",))


def test_a_program_is_run_as_a_whole(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = tracing.Traced(tracer="", counts={}, missing=())
    monkeypatch.setattr(tracing, "trace", lambda *_, **__: traced)
    program = tmp_path / "program.py"
    program.write_text("import sys, time\nassert sys.argv[1] == 'x'\ntime.sleep(0.05)\n", encoding="utf-8")
    found = native.count_program(
        [str(program), "x"], Path(sys.executable), threads=4, settings=settings, log=tmp_path / "log"
    )
    assert (found.threads, found.iterations, found.rounds) == (4, 1, native.PROGRAM_RUNS)
    assert found.wall_ns.low > 0.05e9
    assert 0 < found.cpu_ns.median < found.wall_ns.high
    assert found.minor_faults.low > 100
