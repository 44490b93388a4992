"""``nox -s tsan`` and ``nox -s asan``: build, run, collect the reports, hold them against what is known."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ftnumpy import compiler, console, environment, process, suites
from ftnumpy.census.report import write
from ftnumpy.console import Summary
from ftnumpy.errors import BuildError, PrerequisiteError, SanitizerFindings, TestsFailed
from ftnumpy.options import Options
from ftnumpy.sanitizers import known_answer, touched
from ftnumpy.sanitizers.known import Finding, read_known, sort_out
from ftnumpy.sanitizers.reports import Report, read_folder
from ftnumpy.sanitizers.runs import Run, runs
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

FLAGS = {"tsan": "-fsanitize=thread", "asan": "-fsanitize=address,undefined"}
NAMES = {"tsan": "ThreadSanitizer", "asan": "AddressSanitizer and UndefinedBehaviorSanitizer"}
FORMAT = 1
# How many times longer the patches' tests let a program run.
PATIENCE = "8"
UBSAN_PATH = Path(__file__).with_name("ubsan_path.c")

# Whoever shows the stacks of a program that hangs reads the frames of threads that run; what CPython's own list means
# with 'dump_traceback', whose parts the compiler inlines or not.
SUPPRESSIONS = ("race:_Py_DumpTracebackThreads",)


def run(stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Every run on the sanitizer's variant, a step of ``summary`` each; returns what was found, in short.

    After all have run, raises `SanitizerFindings` for reports that are new or lie in code that patches touch, and
    `TestsFailed` for runs that failed.  All findings are kept in ``.build/sanitizers``, as JSON.
    """
    tool = options.variant.name
    known = read_known(settings.root / "sanitizers.toml", tool)
    probe(settings, tool)
    made = environment.test_environment(stack, settings, options, summary)
    (numpy,) = (each for each in stack.numpy.releases if each.version == made.wheel.version.partition("+")[0])
    touch = touched.find(stack, settings, options.variant, made.interpreter.release, numpy)
    lines, hiding = touched.suppressions(touch)
    for line in hiding:
        console.say(f"  CPython's suppression '{line}' is left out: it would hide code that a patch touches")
    suppressions = options.logs / "suppressions.txt"
    suppressions.write_text("\n".join([*lines, *SUPPRESSIONS, ""]), encoding="utf-8")

    if tool == "asan":
        _compile_ubsan_path(settings, options.logs / UBSAN_PATH.with_suffix(".so").name)

    def variables(folder: Path) -> dict[str, str]:
        return suites.tests_variables(made) | environment_variables(
            settings, tool, folder / "of", suppressions, options.logs
        )

    folder = options.logs / "reports" / "known-answer"
    folder.mkdir(parents=True)
    with summary.step("a mistake made on purpose") as result:
        result.append(known_answer.prove(made, tool, variables(folder), folder))
    plan = runs(settings, made, tool, suites.applied(stack, settings, options.variant), options)
    reports: list[tuple[str, Report]] = []
    failures: list[str] = []
    for each in plan:
        folder = options.logs / "reports" / _slug(each.name)
        folder.mkdir(parents=True)
        found = _run(each, variables(folder), folder, options.logs / f"{_slug(each.name)}.log", summary, failures)
        reports += [(each.name, report) for report in found]
    findings = sort_out(reports, known, touch.touched)
    kept = _keep(settings, options, tool, plan, findings, failures)
    console.say("\n".join(["", *map(_line, findings)]) if findings else "")
    new = [finding for finding in findings if finding.known is None]
    closing = (
        f"{NAMES[tool]}: {len(reports)} reports of {len(findings)} mistakes, {len(findings) - len(new)} of them known "
        f"and upstream's, {len(new)} new; {kept}"
    )
    if new:
        raise SanitizerFindings("\n".join([closing, *map(_whole, new), *failures]))
    if failures:
        raise TestsFailed("\n".join([closing, *failures]))
    return closing


def probe(settings: Settings, tool: str) -> None:
    """Raise `PrerequisiteError` unless the compiler has the sanitizer and this kernel lets it run."""
    command = [settings.cc, FLAGS[tool], "-x", "c", "-", "-o"]
    with tempfile.TemporaryDirectory(prefix="ftnumpy-") as folder:
        program = Path(folder) / "probe"
        compiled = subprocess.run(
            [*command, program], input="int main(void) { return 0; }\n", capture_output=True, text=True, check=False
        )
        if compiled.returncode != 0:
            raise PrerequisiteError(
                f"{settings.cc} can't build with {FLAGS[tool]}: {compiled.stderr.strip()}\n"
                "install the compiler's sanitizer libraries (Debian's gcc has them), or set CC and CXX to a compiler "
                "that has them"
            )
        started = subprocess.run([program], capture_output=True, text=True, check=False)
    if started.returncode != 0:
        raise PrerequisiteError(
            f"a program built with {FLAGS[tool]} does not run here: {started.stderr.strip()}\n"
            "Kernels that scatter addresses over more than 28 bits are too much for an older sanitizer: as root, "
            "'sysctl vm.mmap_rnd_bits=28'; or start the session with 'setarch -R' before it"
        )


def _compile_ubsan_path(settings: Settings, library: Path) -> None:
    process.run(
        [
            *(settings.cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
            *("-Wl,--no-as-needed", "-o", library, UBSAN_PATH, "-lubsan"),
        ],
        what=f"compile {UBSAN_PATH.name}",
        log=library.with_suffix(".log"),
        env=compiler.clean_environment(),
    )


def environment_variables(settings: Settings, tool: str, log: Path, suppressions: Path, folder: Path) -> dict[str, str]:
    """For a run whose reports go to files that begin with ``log``; ``folder`` has what is made of `UBSAN_PATH`."""
    # A report must not change how a test's child ends, and tests that crash on purpose want the crash.
    general = "handle_segv=0:handle_abort=0:allocator_may_return_null=1"
    # To ASan only the first error of a process is a report: what follows it is not to be trusted.
    options = {
        "tsan": {
            "TSAN_OPTIONS": f'log_path="{log}":{general}:exitcode=0:history_size=7:die_after_fork=0:'
            f'suppressions="{suppressions}"'
        },
        # In one file the two would write over each other.
        "asan": {
            "ASAN_OPTIONS": f'log_path="{log}":{general}:detect_leaks=0',
            "UBSAN_OPTIONS": f'log_path="{log}":{general}:print_stacktrace=1',
            "FTNUMPY_UBSAN_LOG": f"{log}-undefined",
        },
    }
    # OpenBLAS is not built by us, so a sanitizer doesn't see how its threads wait for each other.
    return {
        "CC": f"{settings.cc} {FLAGS[tool]}",
        "CXX": f"{settings.cxx} {FLAGS[tool]}",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_AVAILABLE_MEM": suites.NUMPY_MEMORY,
        "FTNUMPY_PATIENCE": PATIENCE,
        **options[tool],
        # The interpreter of tsan has the runtime itself.
        **(_preload(settings, folder) if tool == "asan" else {}),
    }


def _preload(settings: Settings, folder: Path) -> dict[str, str]:
    libraries = compiler.preload(settings, "asan")["LD_PRELOAD"]
    return {"LD_PRELOAD": f"{libraries} {folder / UBSAN_PATH.with_suffix('.so').name}"}


def _run(
    run: Run, variables: dict[str, str], folder: Path, log: Path, summary: Summary, failures: list[str]
) -> list[Report]:
    """One run's reports; why it failed, if it did, is added to ``failures``."""
    for test, reason in run.excluded.items():
        console.say(f"  left out: {test} ({reason})")
    found: list[Report] = []
    try:
        with summary.step(run.name, log) as result:
            try:
                process.run(run.command, what=run.name, log=log, cwd=run.folder, env=variables, timeout=run.timeout)
            finally:
                found = read_folder(folder)
            result.append(f"{run.closing(log)}, {len(found)} reports")
    except BuildError as error:
        failures.append(str(error))
    return found


def _keep(
    settings: Settings,
    options: Options,
    tool: str,
    plan: Sequence[Run],
    findings: Sequence[Finding],
    failures: list[str],
) -> Path:
    """All that was found, as JSON; returns its place."""
    path = settings.root / ".build" / "sanitizers" / f"{tool}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "format": FORMAT,
        "tool": tool,
        "minutes": options.minutes,
        "seed": options.seed,
        "runs": [each.name for each in plan],
        "failures": failures,
        "findings": [asdict(finding) for finding in findings],
    }
    write(path, json.dumps(data, indent=1) + "\n")
    return path


def _line(finding: Finding) -> str:
    if finding.ours:
        state = f"IN CODE THAT PATCHES TOUCH ({finding.ours})"
    else:
        state = f"known, {finding.known.project}, {finding.known.reference}" if finding.known else "NEW"
    return f"{finding.count:5} x {finding.name} [{'; '.join(finding.runs)}]: {state}"


def _whole(finding: Finding) -> str:
    return f"\n{_line(finding).strip()}\n{finding.example}"


def _slug(name: str) -> str:
    return "-".join(re.findall(r"[a-z]+", name.lower().replace("'", "")))
