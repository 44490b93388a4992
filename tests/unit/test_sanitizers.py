"""What sanitizers write, read; what is known, new or ours, told apart; what patches touch, found out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ftnumpy import environment, process, suites
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.errors import CommandFailed, PrerequisiteError, SanitizerFindings, TestsFailed, UsageError
from ftnumpy.git import create_repository, git
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.patchqueue import BASE
from ftnumpy.sanitizers import command, known_answer, touched
from ftnumpy.sanitizers.known import Known, read_known, sort_out
from ftnumpy.sanitizers.reports import Frame, plain_name, read
from ftnumpy.sanitizers.runs import EXCLUDED, LARGE, RACING_UPSTREAM, UNFIT, Run, runs
from ftnumpy.sanitizers.touched import Touch, Touched
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import TSAN, Stack, read_stack
from ftnumpy.stress import kinds

# As gcc 12's runtimes wrote them.
RACE = """\
==================
WARNING: ThreadSanitizer: data race (pid=12248)
  Read of size 8 at 0x55a5df56b070 by thread T2 (mutexes: write M1):
    #0 memcpy ../../../../src/libsanitizer/sanitizer_common/sanitizer_common_interceptors.inc:827 (libtsan.so.2+0x12)
    #1 _Py_atomic_load_ptr ./Include/cpython/pyatomic_gcc.h:300 (python3.13t+0x11fe)
    #2 list_item.part.0 Objects/listobject.c:7 (python3.13t+0x11fe) (BuildId: 12ab)
    #3 list_subscript Objects/listobject.c:90 (python3.13t+0x11ff)

  Previous write of size 8 at 0x55a5df56b070 by thread T1:
    #0 resize(_object*, int) ../numpy/_core/src/common/hash.cpp:5 (hash.so+0x127f)
    #1 body <null> (hash.so+0x12b0)

  Location is heap block of size 16 at 0x55a5df56b070 allocated by main thread:
    #0 malloc ../../../../src/libsanitizer/tsan/tsan_interceptors_posix.cpp:647 (libtsan.so.2+0x3e)
    #1 touched_one Objects/touched.c:12 (python3.13t+0x2f)

SUMMARY: ThreadSanitizer: data race Objects/listobject.c:7 in list_item
==================
"""
FORGOTTEN = """\
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 4 at 0x1 by main thread:
    #0 writer a.c:5 (a+0x1)

  Previous read of size 4 at 0x1 by thread T1:
    [failed to restore the stack]

SUMMARY: ThreadSanitizer: data race a.c:5 in writer
==================
"""
LOCKS = """\
==================
WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=7)
  Cycle in lock order graph: M1 (0x1) => M2 (0x2) => M1

  Mutex M2 acquired here while holding mutex M1 in main thread:
    #0 pthread_mutex_lock ../../../../src/libsanitizer/tsan/x.cpp:1 (libtsan.so.2+0x1)
    #1 first a.c:5 (a+0x1)

  Mutex M1 acquired here while holding mutex M2 in main thread:
    #0 pthread_mutex_lock ../../../../src/libsanitizer/tsan/x.cpp:1 (libtsan.so.2+0x1)
    #1 second a.c:9 (a+0x1)

SUMMARY: ThreadSanitizer: lock-order-inversion (potential deadlock) a.c:5 in first
==================
"""
OVERFLOW = """\
=================================================================
==12303==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x603000000061 at pc 0x55c62899d4b5 bp 0x7ff sp 0x7f
READ of size 1 at 0x603000000061 thread T0
    #0 0x55c62899d4b4 in (anonymous namespace)::get(char*, int) /src/bad.cpp:4
    #1 0x7f78a1645249 in __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58
    #2 0x55c62899d140 in _start (/src/bad+0x2140)

0x603000000061 is located 1 bytes to the right of 32-byte region [0x603000000040,0x603000000060)
allocated by thread T0 here:
    #0 0x7f78a24b89cf in __interceptor_malloc ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:69
    #1 0x55c62899d2fb in main /src/bad.cpp:7

SUMMARY: AddressSanitizer: heap-buffer-overflow /src/bad.cpp:4 in get
"""
UNDEFINED = """\
../numpy/bad.c:5:30: runtime error: signed integer overflow: 1 + 2147483647 cannot be represented in type 'int'
    #0 0x55c62899d3b6 in over(int) ../numpy/bad.c:5
    #1 0x55c62899d3b6 in main ../numpy/bad.c:7

../numpy/bad.c:4:82: runtime error: load of misaligned address 0x603000000061 for type 'long', which requires 8 byte
0x603000000061: note: pointer points here
 00 00 00  00 00 00 00 00 00 00 00
              ^
    #0 0x55c62899d4a7 in get ../numpy/bad.c:4
"""


def test_a_race_is_named_after_the_two_functions_that_are_no_helpers() -> None:
    (report,) = read(RACE)
    assert report.key == ("data race", ("list_item", "resize"))
    first, second = report.accesses
    assert first.what == "Read of size 8 at 0x55a5df56b070 by thread T2 (mutexes: write M1)"
    assert [frame.line for frame in first.culprits] == [827, 300, 7]
    assert first.frames[3] == Frame("list_subscript", "Objects/listobject.c", 90)
    assert second.frames == (Frame("resize", "../numpy/_core/src/common/hash.cpp", 5), Frame("body", "", 0))
    assert report.text.startswith("WARNING") and "Location is heap block" in report.text


def test_a_stack_that_is_forgotten_is_an_unknown_function() -> None:
    (report,) = read(FORGOTTEN)
    assert report.key == ("data race", ("?", "writer"))


def test_what_is_no_race_is_named_after_its_first_stack() -> None:
    (report,) = read(LOCKS)
    assert report.key == ("lock-order-inversion (potential deadlock)", ("first",))


def test_errors_of_memory_and_undefined_behaviour() -> None:
    assert [report.key for report in read(OVERFLOW)] == [("heap-buffer-overflow", ("get",))]
    assert [report.key for report in read(UNDEFINED)] == [
        ("signed integer overflow: … + … cannot be represented in type …", ("over",)),
        ("load of misaligned address … for type …, which requires … byte", ("get",)),
    ]


def test_several_reports_of_one_process() -> None:
    assert len(read(RACE + FORGOTTEN + RACE + "ThreadSanitizer: reported 3 warnings\n")) == 3
    assert read("") == [] and read("ThreadSanitizer: Matched 1 suppressions\n") == []


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("f.part.0.constprop.3", "f"),
        ("f.isra.0", "f"),
        ("f.cold", "f"),
        ("f(int, char*)", "f"),
        ("(anonymous namespace)::f<int>(int)", "f<int>"),
        ("", "?"),
    ],
)
def test_a_function_has_the_name_of_its_source(name: str, plain: str) -> None:
    assert plain_name(name) == plain


TOUCHED = Touched(lines={"numpy/_core/src/common/hash.cpp": ((1, 4), (8, 20))}, functions=("resize", "insert"))
KNOWN = Known(
    tool="tsan",
    kind="data race",
    functions=("resize", "list_item"),
    project="cpython",
    reference="gh-1",
    why="it is old",
)


def test_known_new_and_ours_are_told_apart() -> None:
    race, forgotten = read(RACE + FORGOTTEN)
    found = sort_out([("a", race), ("b", race), ("a", forgotten)], [KNOWN], TOUCHED)
    assert [(each.functions, each.count, each.runs) for each in found] == [
        (("?", "writer"), 1, ("a",)),
        (("list_item", "resize"), 2, ("a", "b")),
    ]
    assert [each.known for each in found] == [None, KNOWN] and not any(each.ours for each in found)


@pytest.mark.parametrize("lines", [((5, 5),), ((1, 2), (4, 9))])
def test_what_patches_touch_is_never_known(lines: tuple[tuple[int, int], ...]) -> None:
    (race,) = read(RACE)
    here = replace(TOUCHED, lines={"numpy/_core/src/common/hash.cpp": lines})
    (found,) = sort_out([("a", race)], [KNOWN], here)
    assert found.known is None and found.ours == "resize ../numpy/_core/src/common/hash.cpp:5"


@pytest.mark.parametrize(
    ("kind", "functions", "knows"),
    [
        ("data race", ("list_*", "resize"), True),
        ("data race", ("resize", "list_*"), True),
        ("data *", ("*", "*"), True),
        ("data race", ("*",), False),
        ("use-*", ("*", "*"), False),
        ("data race", ("list_*", "list_*"), False),
    ],
)
def test_an_entry_may_be_a_pattern(kind: str, functions: tuple[str, ...], knows: bool) -> None:
    (race,) = read(RACE)
    entry = replace(KNOWN, kind=kind, functions=functions)
    assert (sort_out([("a", race)], [entry], TOUCHED)[0].known is entry) == knows


def test_helpers_that_patches_touch_are_ours_but_what_allocated_the_memory_is_not() -> None:
    (race,) = read(RACE)
    helper = replace(TOUCHED, lines={"Include/cpython/pyatomic_gcc.h": ((300, 300),)})
    allocation = replace(TOUCHED, lines={"Objects/touched.c": ((1, 100),)})
    caller = replace(TOUCHED, lines={"Objects/listobject.c": ((80, 100),)})
    ours = [sort_out([("a", race)], [], each)[0].ours for each in (helper, allocation, caller)]
    assert ours == ["_Py_atomic_load_ptr ./Include/cpython/pyatomic_gcc.h:300".replace("./", ""), None, None]


def test_a_frame_without_a_file_is_held_by_its_name() -> None:
    assert TOUCHED.holds(Frame("insert", "", 0)) and not TOUCHED.holds(Frame("other", "", 0))
    assert not TOUCHED.holds(Frame("insert", "elsewhere/hash.cpp", 2))


BEFORE = """\
static int declared(void);

static int
kept(void)
{
    return 1;
}

static int
changed(int one,
        int two)
{
    int sum = one + two;
    sum += 0;
    return sum;
}

int last(void) { return 2; }
"""


def test_a_changed_line_touches_its_whole_function_and_no_other(tmp_path: Path) -> None:
    create_repository(tmp_path)
    source = tmp_path / "Objects" / "some.c"
    source.parent.mkdir()
    cases = tmp_path / "Python" / "generated_cases.c.h"
    cases.parent.mkdir()
    switch = [
        "",
        *(f"        TARGET({name}) {{\n            work({name});\n        }}\n" for name in ("A", "B", "C")),
        "",
    ]
    source.write_text(BEFORE)
    cases.write_text("\n".join(switch))
    author = "--author=a <a@b>"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "base", author)
    git(tmp_path, "update-ref", BASE, "HEAD")
    source.write_text(BEFORE.replace("sum += 0", "sum += 3").replace("declared(void)", "declared(int)"))
    cases.write_text("\n".join(switch).replace("work(B)", "more(B)"))
    git(tmp_path, "commit", "-qam", "patch", author)
    found = touched.touched_in(tmp_path)
    assert found.functions == ("changed",), "a declaration touches nothing"
    held = [line for line in range(1, 25) if found.holds(Frame("x", "./Objects/some.c", line))]
    assert set(range(10, 17)) <= set(held) and not {4, 5, 6, 7, 18} & set(held)
    held = [line for line in range(1, 14) if found.holds(Frame("x", "Python/generated_cases.c.h", line))]
    assert {6, 7, 8} <= set(held) and not {2, 3, 4, 10, 11, 12} & set(held), "one instruction, not the whole loop"


def test_a_suppression_that_hides_what_a_patch_touches_is_left_out() -> None:
    text = "# race:resize\nrace:resize\nrace_top:other\n\nthread:pthread_create\n"
    kept, hiding = touched.suppressions(Touch(touched=TOUCHED, suppressions=text))
    assert hiding == ["race:resize"]
    assert kept == ["# race:resize", "race_top:other", "", "thread:pthread_create"]


ENTRY = """\
[[known]]
tool = "tsan"
kind = "data race"
functions = ["a", "b"]
project = "numpy"
reference = "gh-12"
why = "it is old"
"""


def test_the_trees_own_list_is_in_order() -> None:
    for tool in ("tsan", "asan"):
        for entry in read_known(ROOT / "sanitizers.toml", tool):
            assert entry.tool == tool and entry.why.endswith(".")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('tool = "tsan"', 'tool = "msan"', "the tools are tsan and asan"),
        ('project = "numpy"', 'project = "scipy"', "the projects cpython and numpy"),
        ('"gh-12"', '"somewhere"', "the reference is an issue such as"),
        ('why = "it is old"', 'why = " "', "why it is not ours"),
        ('why = "it is old"\n', "", "give tool, kind, functions"),
        ('["a", "b"]', '["a", "b", "c"]', "give one function, or the two"),
        ('["a", "b"]', "[]", "give one function, or the two"),
        ("[[known]]", "[[races]]", "'races' is not meant here"),
        ("[[known]]", "[[known]", "sanitizers.toml: "),
    ],
)
def test_a_wrong_entry_names_the_file_and_the_fault(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in ENTRY
    file = tmp_path / "sanitizers.toml"
    file.write_text(ENTRY.replace(old, new))
    with pytest.raises(UsageError, match=told):
        read_known(file, "tsan")


def test_an_entry_is_one_tools_and_stands_once(tmp_path: Path) -> None:
    file = tmp_path / "sanitizers.toml"
    file.write_text(ENTRY)
    assert read_known(file, "tsan")[0].key == ("data race", ("a", "b")) and read_known(file, "asan") == ()
    file.write_text(ENTRY + ENTRY.replace('["a", "b"]', '["b", "a"]'))
    with pytest.raises(UsageError, match="twice"):
        read_known(file, "tsan")
    with pytest.raises(UsageError, match="can't be read"):
        read_known(tmp_path / "none.toml", "tsan")


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def made(stack: Stack, tmp_path: Path) -> Environment:
    (tmp_path / "lib" / "python3.13t" / "site-packages" / "numpy").mkdir(parents=True)
    release = stack.cpython.releases[0]
    return Environment(
        folder=tmp_path,
        python=tmp_path / "python",
        interpreter=Interpreter(tmp_path / "python3.13t", tmp_path, "aa", release, "ft1", False),
        wheel=Wheel(tmp_path / "numpy.whl", f"{stack.numpy.releases[0].version}+ft1", "bb", False),
    )


def chosen(settings: Settings) -> Options:
    return Options(variant=TSAN, profile="default", minutes=1.0, seed=7, logs=settings.cache / "logs" / "run")


def test_what_runs(settings: Settings, made: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = {
        "tests/patches/test_a.py::test_b": "it can't",
        "test.test_c.*": "it can't either",
        "numpy/tests/test_d.py::test_e": "nor can it",
    }
    monkeypatch.setitem(EXCLUDED, "tsan", left_out)
    for queue, files in (
        ("patches", ("numpy/_core/tests/test_multithreading.py", "numpy/random/tests/test_direct.py", "numpy/tests.c")),
        ("cpython-patches", ("Lib/test/test_capi/test_mem.py", "Lib/test/test_module/__init__.py", "Lib/os.py")),
    ):
        (settings.root / queue).mkdir()
        (settings.root / queue / "0001").write_text("".join(f"--- a/{file}\n+++ b/{file}\n" for file in files))
    patches = ["cpython-patches/0001", "patches/0001"]
    plan = {each.name: each for each in runs(settings, made, "tsan", patches, chosen(settings))}
    assert [name for name in plan if not name.startswith("stress")] == [
        "NumPy's tests of threads",
        "NumPy's tests of the patches",
        "CPython's tests of the patches",
        "patches' tests",
    ]
    kinds_run = {name.partition(": ")[2].replace(" ", "_") for name in plan} - {""}
    assert kinds_run == {kind.name for kind in kinds.KINDS} - UNFIT["tsan"].keys()
    assert "--deselect=tests/patches/test_a.py::test_b" in plan["patches' tests"].command
    assert "--applied=cpython-patches/0001,patches/0001" in plan["patches' tests"].command
    cpython = plan["CPython's tests of the patches"].command
    assert cpython[0] == made.interpreter.python and "--ignore=test.test_c.*" in cpython
    assert not any("test_a.py" in str(word) for word in cpython)
    assert "--deselect=numpy/tests/test_d.py::test_e" in plan["NumPy's tests of threads"].command
    assert [len(each.excluded) for each in plan.values()][:4] == [1, 1, 1, 1]
    assert cpython[-2:] == ["test_capi.test_mem", "test_module"]
    assert plan["NumPy's tests of the patches"].command[-2:] == ["--pyargs", "numpy.random.tests.test_direct"]
    asan = runs(settings, made, "asan", patches[1:], chosen(settings))
    stressed = {f"stress: {kind.name.replace('_', ' ')}" for kind in kinds.KINDS if kind.name not in UNFIT["asan"]}
    assert {each.name for each in asan if each.name.startswith("stress")} == stressed
    assert "CPython's tests of the patches" not in {each.name for each in asan}
    seconds = [float(plan[name].command[3]) for name in plan if name.startswith("stress")]
    assert sum(seconds) == pytest.approx(60) and all(plan[name].command[5] == "7" for name in list(plan)[4:])


def test_what_is_left_out_is_there() -> None:
    """A test that gets another name would run again under the sanitizer, and its entry stay."""
    patched = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "patches").glob("*.patch")))
    for test in {test for tests in EXCLUDED.values() for test in tests} - set(RACING_UPSTREAM):
        file, _, name = test.partition("::")
        text = patched if file.startswith("numpy/") else (ROOT / file).read_text(encoding="utf-8")
        assert not name or f"def {name}" in text
    assert {kind for unfit in UNFIT.values() for kind in unfit} <= {kind.name for kind in kinds.KINDS}


@pytest.fixture
def session(
    settings: Settings, made: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[dict[str, str], dict[str, bool]]:
    """The session with its runs replaced: by run, the reports that it leaves, and whether it fails."""
    (settings.root / "sanitizers.toml").write_text(ENTRY.replace('["a", "b"]', '["list_item", "resize"]'))
    writes = {"One": "", "Two": ""}
    fails = {"One": False, "Two": False}

    def run(argv: Sequence[str], *, what: str, log: Path, env: dict[str, str], **_: object) -> None:
        log.write_text("")
        path = env["TSAN_OPTIONS"].partition('log_path="')[2].partition('"')[0]
        if writes[what]:
            Path(f"{path}.123").write_text(writes[what])
        if fails[what]:
            raise CommandFailed(what, "exit status 1", log, [])

    def some(settings: Settings, made: Environment, tool: str, patches: object, options: Options) -> list[Run]:
        return [
            Run(name=name, command=[], folder=tmp_path, timeout=1, closing=lambda log: "3 passed", excluded={})
            for name in writes
        ]

    monkeypatch.setattr(command, "probe", lambda *_: None)
    monkeypatch.setattr(environment, "test_environment", lambda *_: made)
    monkeypatch.setattr(suites, "applied", lambda *_: [])
    monkeypatch.setattr(touched, "find", lambda *_: Touch(touched=TOUCHED, suppressions="race:x\n"))
    monkeypatch.setattr(command, "runs", some)
    monkeypatch.setattr(known_answer, "prove", lambda *_: "it did")
    monkeypatch.setattr(process, "run", run)
    return writes, fails


def start(stack: Stack, settings: Settings) -> str:
    options = chosen(settings)
    options.logs.mkdir(parents=True, exist_ok=True)
    return command.run(stack, settings, options, Summary("tsan"))


@pytest.mark.parametrize("sees", [True, False])
def test_a_sanitizer_that_reports_no_mistake_is_not_trusted(made: Environment, tmp_path: Path, sees: bool) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    report = RACE if sees else ""
    made.python.write_text(f"#!/bin/sh\ncat >of.1 <<'END'\n{report}\nEND\n")
    made.python.chmod(0o755)
    if sees:
        assert known_answer.prove(made, "tsan", {"PATH": "/bin"}, folder) == "reported as it should: data race"
        return
    with pytest.raises(PrerequisiteError, match=r"does not report .*\(data race\).*It reported: nothing"):
        known_answer.prove(made, "tsan", {"PATH": "/bin"}, folder)


def test_each_sanitizer_must_see_a_mistake_of_each_kind_that_it_is_for() -> None:
    assert known_answer.PROGRAMS.keys() == known_answer.KINDS.keys() == command.FLAGS.keys()
    for program in known_answer.PROGRAMS.values():
        compile(program, "known answer", "exec")


def test_known_reports_pass_and_all_are_kept(stack: Stack, settings: Settings, session: Any) -> None:
    writes, _ = session
    writes["Two"] = RACE
    assert "1 reports of 1 mistakes, 1 of them known and upstream's, 0 new" in start(stack, settings)
    kept = json.loads((settings.root / ".build" / "sanitizers" / "tsan.json").read_text())
    assert kept["findings"][0]["functions"] == ["list_item", "resize"] and kept["findings"][0]["runs"] == ["Two"]
    assert (settings.cache / "logs" / "run" / "suppressions.txt").read_text().startswith("race:x\n")


def test_a_new_report_fails_with_its_stacks(stack: Stack, settings: Settings, session: Any) -> None:
    writes, fails = session
    writes["One"], fails["One"] = FORGOTTEN + RACE, True
    with pytest.raises(SanitizerFindings, match="1 new") as caught:
        start(stack, settings)
    message = str(caught.value)
    assert "#0 writer a.c:5" in message and "One failed" in message, "the reports of a failed run count"
    assert "list_item" not in message.partition("1 new")[2].partition("One failed")[0]


def test_a_run_that_fails_fails_the_session(stack: Stack, settings: Settings, session: Any) -> None:
    _, fails = session
    fails["Two"] = True
    with pytest.raises(TestsFailed, match="Two failed"):
        start(stack, settings)


def test_a_compiler_without_sanitizer_is_told_in_one_error(settings: Settings, tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'cannot find -ltsan' >&2; exit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(PrerequisiteError, match=r"can't build with -fsanitize=thread: cannot find -ltsan"):
        command.probe(replace(settings, cc=str(compiler)), "tsan")


def test_a_kernel_that_a_sanitizer_cannot_run_on_is_told_in_one_error(settings: Settings, tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    program = "#!/bin/sh\\necho 'FATAL: unexpected memory mapping' >&2; exit 66\\n"
    compiler.write_text(f'#!/bin/sh\nfor word; do :; done\nprintf "{program}" > "$word"; chmod +x "$word"\n')
    compiler.chmod(0o755)
    with pytest.raises(PrerequisiteError, match=r"unexpected memory mapping\n.*vm.mmap_rnd_bits=28"):
        command.probe(replace(settings, cc=str(compiler)), "tsan")


def test_of_a_large_module_only_what_the_patches_bring_runs(
    settings: Settings, stack: Stack, made: Environment
) -> None:
    in_the_tree = replace(settings, root=ROOT)
    patches = suites.applied(stack, in_the_tree, TSAN)
    every = runs(in_the_tree, made, "tsan", patches, chosen(in_the_tree))
    (run,) = (each for each in every if each.name == "NumPy's tests of the patches")
    texts = "".join((ROOT / patch).read_text(encoding="utf-8") for patch in patches)
    for module, names in LARGE.items():
        assert module not in run.command
        for name in names:
            assert f"{module}::{name}" in run.command
            assert f"\n+class {name}" in texts
