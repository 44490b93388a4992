"""Flame graphs: perf's text folded, the bottlenecks found in stacks and judged, a page that needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from ftnumpy import errors
from ftnumpy.console import Summary
from ftnumpy.errors import PrerequisiteError, UsageError
from ftnumpy.flames import bottlenecks, command, page, record, stacks, worker
from ftnumpy.flames.stacks import Folded, Frame, fold
from ftnumpy.flames.wishes import Wishes
from ftnumpy.options import Options
from ftnumpy.scaling import workloads
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, read_stack

OUTER = """\
              8d py::repeat:/a/ftnumpy/flames/worker.py (/tmp/jitted-7-9.so)
          2e9899 py_trampoline_evaluator (/builds/bin/python3.13t)
           f0ee6 method_vectorcall (/builds/bin/python3.13t)
"""
SCRIPT = f"""\
   18
           709e91 DOUBLE_cos_X86_V4 (/e/site-packages/numpy/_core/_multiarray_umath.cpython-313t.so)
              85 py::make.<locals>.step:<workload> (/tmp/jitted-7-8.so)
          2e9899 py_trampoline_evaluator (/builds/bin/python3.13t)
{OUTER}
   18
 ffffffff81000130 asm_sysvec_apic_timer_interrupt ([kernel.kallsyms])
           70aeb pthread_rwlock_rdlock@@GLIBC_2.34 (/usr/lib/libc.so.6)
          159cd0 _Py_module_getattro_impl.part.0 (/builds/bin/python3.13t)
{OUTER}
   19
           99b4 _dl_lookup_symbol_x (/usr/lib/ld-linux.so.2)
    7f41ffade538 [unknown] ([unknown])

"""

# As they were recorded, without what stands above NumPy's and CPython's own functions.
STOCK_STACKS = {
    "tracemalloc": ("PyDataMem_UserFREE", "PyTraceMalloc_Untrack", "PyGILState_Release", "PyThread_tss_get"),
    "dispatch cache": ("promote_and_get_ufuncimpl", "PyArrayIdentityHash_GetItemWithLock", "_PyThreadState_Attach"),
    "memory handler": ("PyArray_NewFromDescr_int", "PyDataMem_GetHandler", "PyContextVar_Get"),
    "module attributes": ("_PyEval_EvalFrameDefault", "PyObject_GetAttr", "_Py_module_getattro"),
    "allocator": ("array_dealloc", "cfree", "_int_free"),
}
PATCHED_STACKS = (
    ("PyDataMem_UserFREE", "PyTraceMalloc_Untrack"),
    ("promote_and_get_ufuncimpl", "PyArrayIdentityHash_GetItem"),
    ("fetch_curr_extobj_state", "PyContextVar_Get"),
    ("array_dealloc", "mi_free"),
    ("PyObject_GetAttr", "PyMember_GetOne", "malloc"),
)


def stack(*names: str) -> stacks.Stack:
    return tuple(Frame(name, "cpython") for name in names)


STOCK = Folded(samples=9, counts={stack(*names): 1 for names in STOCK_STACKS.values()} | {stack("work"): 3})
FIXED = Folded(samples=9, counts={stack(*names): 1 for names in PATCHED_STACKS} | {stack("work"): 3})


def test_what_runs_below_the_workers_loop_is_the_workload() -> None:
    found = fold(SCRIPT.splitlines(keepends=True))
    assert (found.samples, found.total) == (3, 2)
    assert set(found.counts) == {
        (Frame("make.<locals>.step (<workload>)", "python"), Frame("DOUBLE_cos_X86_V4", "numpy")),
        (
            Frame("_Py_module_getattro_impl", "cpython"),
            Frame("pthread_rwlock_rdlock", "library"),
            Frame("asm_sysvec_apic_timer_interrupt", "kernel"),
        ),
    }
    assert "make.<locals>.step (<workload>);DOUBLE_cos_X86_V4 1\n" in stacks.write_folded(found)


@pytest.mark.parametrize("each", bottlenecks.BOTTLENECKS, ids=lambda each: each.name)
def test_each_bottleneck_is_seen_in_its_own_stack_and_in_none_of_patched(each: bottlenecks.Bottleneck) -> None:
    seen = [name for name, names in STOCK_STACKS.items() if each.place(stack(*names)) is not None]
    assert seen == [each.name]
    assert each.share(STOCK) == 1 / 8 and each.share(FIXED) == 0.0


def test_a_bottleneck_ends_in_the_last_frame_of_its_pattern() -> None:
    cache = next(each for each in bottlenecks.BOTTLENECKS if each.name == "dispatch cache")
    assert cache.place(stack("a", "promote_and_get_ufuncimpl", "b", "pthread_rwlock_rdlock", "c")) == 3
    assert cache.place(stack("a", "pthread_rwlock_rdlock")) is None


def test_bottlenecks_must_be_seen_on_stock_and_gone_on_patched() -> None:
    assert bottlenecks.failures(STOCK, FIXED) == []
    assert [line.partition(":")[0] for line in bottlenecks.failures(STOCK, STOCK)] == list(STOCK_STACKS)
    assert all("not seen on stock" in line for line in bottlenecks.failures(FIXED, FIXED))
    kept = FIXED.counts | {stack(*STOCK_STACKS["allocator"]): 1}
    (line,) = bottlenecks.failures(STOCK, Folded(samples=9, counts=kept))
    assert line == "allocator: 12.5% of the samples on stock, still 11.1% on patched"


def test_a_stray_sample_is_no_bottleneck() -> None:
    counts = {stack("work"): 10_000, stack(*STOCK_STACKS["allocator"]): 1}
    assert bottlenecks.failures(STOCK, Folded(samples=10_001, counts=counts)) == []


def test_a_page_is_whole_and_needs_nothing_else() -> None:
    found = {"stock": STOCK, "patched": FIXED}
    text = page.flames("chain-10", "stock", found, {"samples": "8"}, {"patched": "chain-10-patched.html"})
    assert text.startswith("<!DOCTYPE html>") and text.count("<script>") == 1 and "prefers-color-scheme" in text
    assert not re.search(r"https?:|url\(|@import|<link|<img|<script src", text)
    assert re.findall(r'href="([^"]*)"', text) == ["chain-10-patched.html"]
    tree = json.loads(re.search(r"const tree = (.*);", text)[1])
    names = {callee[0]: callee for callee in tree[4]}
    assert tree[2] == 8 and names["work"][2] == 3 and tree[4][0][0] == "work", "the widest first"
    assert names["array_dealloc"][4][0][:4] == ["cfree", 1, 1, [4]], "marked where the bottleneck ends"
    assert "12.5%" in text and "0.0%" in text


def test_names_are_text_not_markup() -> None:
    hostile = Folded(samples=1, counts={(Frame("</script><b>", "python"), Frame("x;y", "numpy")): 1})
    assert "</script><b>" not in page.flames("<i>", "stock", {"stock": hostile}, {}, {})
    assert stacks.write_folded(hostile) == "</script><b>;x:y 1\n"


def test_without_perf_one_error_says_how_to_get_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: "/usr/bin/apt-get" if name == "apt-get" else None)
    with pytest.raises(PrerequisiteError, match=r"perf.*\n.*install -y linux-perf"):
        record.record(
            Path(sys.executable),
            workloads.select(["chain-10"])[0],
            threads=2,
            seconds=1.0,
            environment={},
            settings=settings,
            log=tmp_path / "log",
        )


@pytest.mark.parametrize(("name", "told"), [("fft", "class of workloads; give one"), ("ftt", "no workload 'ftt'")])
def test_what_is_not_one_workload_is_told_before_anything_is_built(
    settings: Settings, tmp_path: Path, name: str, told: str
) -> None:
    options = Options(variant=PATCHED, profile="default", minutes=1.0, seed=1, logs=tmp_path)
    wishes = Wishes(workload=name, threads=2, seconds=1.0)
    with pytest.raises(UsageError, match=told):
        command.run(wishes, read_stack(ROOT / "stack.toml"), settings, options, Summary("profile"))


def test_the_worker_repeats_units_until_the_time_is_over(tmp_path: Path) -> None:
    program = (
        "def make(seed, first, last):\n"
        "    seen = []\n"
        "    def step(i):\n        seen.append(i)\n        print(seed, seen[-4:], flush=True)\n"
        "    return step\n"
    )
    job = {"program": program, "threads": 2, "units": 3, "seconds": 0.2, "pid": str(tmp_path / "pid")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    ran = subprocess.run(
        [sys.executable, worker.__file__, tmp_path / "job.json"], capture_output=True, text=True, check=True
    )
    assert "0 [0, 1, 2, 0]" in ran.stdout and "1 [0, 1, 2, 0]" in ran.stdout
    assert int((tmp_path / "pid").read_text()) > 0


def test_a_thread_that_fails_fails_the_worker(tmp_path: Path) -> None:
    job = {"program": "make = None", "threads": 2, "units": 3, "seconds": 9, "pid": str(tmp_path / "pid")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    ran = subprocess.run(
        [sys.executable, worker.__file__, tmp_path / "job.json"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1 and "'NoneType' object is not callable" in ran.stderr


@pytest.mark.parametrize("fixed", [True, False])
def test_pages_are_kept_and_then_the_bottlenecks_decide(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    def made(stack: object, settings: object, options: Options, summary: object) -> SimpleNamespace:
        return SimpleNamespace(python=Path(options.variant.name))

    def recorded(python: Path, *_: object, **__: object) -> Folded:
        return FIXED if fixed and python.name == "patched" else STOCK

    monkeypatch.setattr(command.environment, "user_environment", made)
    monkeypatch.setattr(command.suites, "tests_variables", lambda _: {})
    monkeypatch.setattr(command, "record", recorded)
    monkeypatch.setattr(command, "_facts", lambda *_: {})
    options = Options(variant=PATCHED, profile="default", minutes=1.0, seed=1, logs=tmp_path)
    wishes = Wishes(workload=command.SHOWS_ALL, threads=2, seconds=1.0)
    run = partial(command.run, wishes, read_stack(ROOT / "stack.toml"), settings, options, Summary("profile"))
    if fixed:
        assert "chain-10-patched.html" in run()
    else:
        with pytest.raises(errors.TestsFailed, match=r"allocator: 12\.5%.*\n.*see .*chain-10-stock\.html"):
            run()
    folder = settings.root / ".build" / "profile"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("chain-10-patched.folded", "chain-10-patched.html"),
        *("chain-10-stock.folded", "chain-10-stock.html"),
    ]
    assert stacks.read_folded((folder / "chain-10-stock.folded").read_text()).total == STOCK.total
