"""asv's own commands on the stack's history: run, compare, publish.

Everything that asv writes stays below ``.build/bench``, its file about the machine included; the pages go to ``html``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.machine import Machine

from ftnumpy import compiler, process
from ftnumpy.bench import pages
from ftnumpy.bench.history import Step
from ftnumpy.census.report import write
from ftnumpy.settings import Settings

# How much asv measures of each benchmark; more rounds are more processes, between which the commits take turns.
THOROUGH = {"rounds": "2", "repeat": "(2,4,0.3)"}
QUICK = {"rounds": "2", "repeat": "(1,3,0.3)", "warmup_time": "0.05"}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Where asv's files are; ``environment`` is asv's word for the series and profile, ``machine`` for this machine."""

    config: Path
    folder: Path
    pages: Path
    environment: str
    machine: str
    log: Path

    @property
    def benchmarks(self) -> Path:
        return self.config.parent / "benchmarks"

    @property
    def pythons(self) -> Path:
        return self.folder / "environments" / "pythons.json"

    @property
    def results(self) -> Path:
        return self.folder / "results"


def runner_requirement() -> str:
    """asv's half that runs beside the benchmarks, in the version that asv's other half here works with."""
    return f"asv_runner=={importlib.metadata.version('asv_runner')}"


def prepare(suite: Suite, pythons: Mapping[str, Path]) -> None:
    """Tell asv this machine's facts, and which python (by commit) is which."""
    facts = Machine.get_defaults() | {"machine": suite.machine}
    home = _home(suite)
    home.mkdir(parents=True, exist_ok=True)
    write(home / ".asv-machine.json", json.dumps({suite.machine: facts, "version": 1}))
    suite.pythons.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(suite.pythons.read_text(encoding="utf-8")) if suite.pythons.exists() else {}
    own = known.get(suite.environment, {}) | {commit: str(python) for commit, python in pythons.items()}
    write(suite.pythons, json.dumps(known | {suite.environment: own}, indent=1))


def run(suite: Suite, commits: Sequence[str], effort: Mapping[str, str]) -> None:
    """Measure every benchmark on ``commits``, which take turns from round to round."""
    hashes = suite.folder / "commits"
    hashes.write_text("".join(f"{commit}\n" for commit in commits), encoding="ascii")
    attributes = [word for name, value in effort.items() for word in ("--attribute", f"{name}={value}")]
    _asv(
        suite,
        *("run", f"HASHFILE:{hashes}", "-E", f"ftnumpy:{suite.environment}", "--machine", suite.machine),
        *("--interleave-rounds", "--show-stderr", "--no-pull", *attributes),
        what=f"asv run, {len(commits)} commits",
    )


def compare(suite: Suite, before: str, after: str) -> str:
    """asv's table of two commits; ratios of more than 2 percent are marked."""
    log = suite.log.with_name("asv-compare.log")
    _asv(
        suite,
        *("compare", "-E", f"ftnumpy:{suite.environment}", "--machine", suite.machine, "--factor", "1.02"),
        *(before, after),
        what="asv compare",
        log=log,
    )
    _, _, table = log.read_text(encoding="utf-8").strip().partition("\n")
    return table.strip()


def publish(suite: Suite, steps: Sequence[Step]) -> None:
    """Make the pages anew from all results; the old ones stay until the new ones are whole."""
    part = suite.folder / f"html-{os.getpid()}"
    replaced = suite.folder / f"html-{os.getpid()}-replaced"
    try:
        _asv(suite, "publish", "--no-pull", "--html-dir", str(part), what="asv publish")
        pages.bring_scripts(part, suite.config.parent / "vendor")
        pages.write_patches(part, steps)
        if suite.pages.exists():
            suite.pages.rename(replaced)
        part.rename(suite.pages)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def read_benchmarks(suite: Suite) -> dict[str, dict[str, Any]]:
    """What asv found in the suite: by name, with ``type``, ``params`` and ``unit``."""
    found: dict[str, Any] = json.loads((suite.results / "benchmarks.json").read_text(encoding="utf-8"))
    return {name: each for name, each in found.items() if name != "version"}


def machine_name(cpu: str) -> str:
    """A name for the kind of machine: hosts' names change where hosts are made for a day."""
    words = re.findall(r"[a-z0-9.]+", re.sub(r"\(\w+\)|@.*", " ", cpu.lower())) or [platform.machine()]
    return "-".join([*words, f"{os.cpu_count() or 1}-cores"])


def read_cpu() -> str:
    """The processor's name in /proc/cpuinfo; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def open_suite(settings: Settings, series: str, profile: str, logs: Path) -> Suite:
    """The suite of this checkout for one series (``3.13``) and build profile."""
    return Suite(
        config=settings.root / "asv_bench" / "asv.conf.json",
        folder=settings.root / ".build" / "bench",
        pages=settings.root / "html",
        environment=f"{series}t" if profile == "default" else f"{series}t-{profile}",
        machine=machine_name(read_cpu()),
        log=logs / "asv.log",
    )


def _home(suite: Suite) -> Path:
    return suite.folder / "home"


def _asv(suite: Suite, *words: str, what: str, log: Path | None = None) -> None:
    variables = {name: value for name, value in compiler.clean_environment().items() if not name.startswith("PYTHON")}
    process.run(
        [sys.executable, "-m", "asv", "--config", str(suite.config), *words],
        what=what,
        log=log or suite.log,
        env=variables | {"HOME": str(_home(suite)), "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
    )
