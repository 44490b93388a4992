"""How CPython is built, and that an interpreter which isn't what was asked for is no result."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ftnumpy import compiler, cpython, patchqueue, process, recipe
from ftnumpy.cpython import MODULES, Interpreter
from ftnumpy.errors import BuildError
from ftnumpy.git import create_repository, git
from ftnumpy.patchqueue import Patch
from ftnumpy.recipe import Built, Recipe
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import GIL, PATCHED, TSAN, Stack, Variant, read_stack

DATE = "1700000000 +0000"
GOOD = {
    "version": "3.13.15",
    "gil": False,
    "flags": "-DNDEBUG -g -O3 -Wall",
    "missing": [],
}


@dataclass
class Runs:
    """The commands that a build ran, with their environments; ``answer`` is what the new interpreter says."""

    answer: dict[str, Any] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    commit: str = ""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """Upstream's build replaced: `make install` leaves an interpreter that gives ``runs.answer``."""
    state = Runs()

    def make_tree(archive: Path, patches: tuple[Patch, ...], folder: Path) -> None:
        folder.mkdir()
        create_repository(folder)
        dates = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
        git(folder, "commit", "--allow-empty", "-qm", "base", "--author=a <a@b>", environment=dates)
        state.commit = git(folder, "rev-parse", "--short=10", "HEAD").decode().strip()

    def run(argv: list[str], *, env: dict[str, str], **_: object) -> None:
        state.commands.append([str(word) for word in argv])
        state.environments.append(env)
        if "install" in argv:
            prefix = state.commands[0][1].removeprefix("--prefix=")
            stage = next(str(word) for word in argv if str(word).startswith("DESTDIR=")).removeprefix("DESTDIR=")
            name = "python3.13" if "--enable-gil" in state.commands[0] else "python3.13t"
            python = Path(stage + prefix) / "bin" / name
            python.parent.mkdir(parents=True)
            python.write_text(f"#!/bin/sh\necho '{json.dumps(state.answer)}'\n")
            python.chmod(0o755)

    def make(settings: Settings, plan: Recipe, build: Any) -> Built:
        work = tmp_path / "work"
        work.mkdir()
        folder = build(tmp_path / "archive", plan.project.releases[0], work, tmp_path / "builds" / "cpython-1")
        return Built(folder, plan.project.releases[0], "aa", True)

    monkeypatch.setattr(compiler, "identify", lambda settings: "gcc 1")
    monkeypatch.setattr(patchqueue, "make_tree", make_tree)
    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(recipe, "make", make)
    return state


@pytest.fixture
def stack(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    patches = []
    for name in ("0001-a.patch", "0002-b.patch"):
        (tmp_path / name).write_text(name)
        patches.append(Patch(tmp_path / name, name))
    monkeypatch.setattr(patchqueue, "read_queue", lambda queue: tuple(patches))
    return read_stack(ROOT / "stack.toml")


def build(
    stack: Stack,
    settings: Settings,
    runs: Runs,
    profile: str = "default",
    variant: Variant = PATCHED,
    prefix: Path | None = None,
    **answer: Any,
) -> Interpreter:
    """Build with an interpreter that answers GOOD, changed by ``answer``.  The commit is known when the tree is."""
    version = stack.cpython.releases[0].version
    probe = settings.root / "probe"
    patchqueue.make_tree(Path("archive"), (), probe)
    runs.answer = GOOD | {"version": version, "build": f"{stack.local_version}-c2:{runs.commit}"} | answer
    return cpython.interpreter(stack, settings, variant, profile, settings.root / "log", prefix)


def test_the_build_goes_to_its_final_prefix_with_the_same_identity_throughout(
    stack: Stack, settings: Settings, runs: Runs, tmp_path: Path
) -> None:
    made = build(stack, settings, runs, "release")
    configure, make, install = runs.commands
    assert configure[1] == f"--prefix={tmp_path / 'builds' / 'cpython-1'}"
    assert {"--disable-gil", "--enable-optimizations", "--with-lto"} <= set(configure)
    variables = [word for word in make if "=" in word]
    assert f"GITTAG=echo {stack.local_version}-c2" in variables
    assert f"GITVERSION=echo {runs.commit}" in variables
    assert set(variables) <= set(install), "a variable that differs at install would compile anew"
    assert made.python == made.prefix / "bin" / "python3.13t"
    assert made.tag == f"{stack.local_version}-c2"


def test_one_with_a_prefix_of_its_own_is_the_same_in_every_cache(
    stack: Stack, settings: Settings, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Recipe] = []
    make = recipe.make
    monkeypatch.setattr(recipe, "make", lambda settings, plan, build: plans.append(plan) or make(settings, plan, build))
    made = build(stack, settings, runs, prefix=Path("/install"))
    assert runs.commands[0][1] == "--prefix=/install"
    assert made.prefix == tmp_path / "work" / "stage" / "install" and made.python == made.prefix / "bin" / "python3.13t"
    assert plans[0].more["prefix"] == "/install" and str(settings.cache) not in str(plans[0].more)


def test_only_the_compilation_gets_the_date_of_the_source(stack: Stack, settings: Settings, runs: Runs) -> None:
    build(stack, settings, runs)
    dates = [environment.get("SOURCE_DATE_EPOCH") for environment in runs.environments]
    assert dates == [None, DATE.split()[0], None]


def test_the_variant_gil_has_its_lock(stack: Stack, settings: Settings, runs: Runs) -> None:
    made = build(stack, settings, runs, variant=GIL, gil=True)
    words = [word for word in runs.commands[0] if word.endswith("able-gil")]
    assert words == ["--disable-gil", "--enable-gil"], "configure goes by the last one"
    assert made.gil and made.python == made.prefix / "bin" / "python3.13"


def test_the_build_of_a_sanitizer_reports_nothing(stack: Stack, settings: Settings, runs: Runs) -> None:
    made = build(stack, settings, runs, variant=TSAN)
    assert "--with-thread-sanitizer" in runs.commands[0] and not made.gil
    assert {each["TSAN_OPTIONS"] for each in runs.environments} == {"report_bugs=0"}
    assert "COMPILEALL_OPTS=-j0 -r0" in runs.commands[2]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"gil": True}, "gil is True, not False"),
        ({"version": "3.13.1"}, "version is '3.13.1'"),
        ({"build": "main"}, "build is 'main'"),
        ({"flags": "-DNDEBUG -O2"}, "compiled without -O3"),
        ({"flags": "-O3"}, "compiled without -DNDEBUG"),
        *(({"missing": [module]}, f"lacks {module}") for module in MODULES),
    ],
)
def test_an_interpreter_that_is_not_what_was_asked_for_is_an_error(
    stack: Stack, settings: Settings, runs: Runs, answer: dict[str, Any], told: str
) -> None:
    with pytest.raises(BuildError, match=told):
        build(stack, settings, runs, **answer)


def test_the_modules_that_a_build_must_have() -> None:
    assert {"ssl", "zlib", "ctypes", "lzma", "bz2", "sqlite3", "pip"} <= set(MODULES)


def test_platform_understands_the_version_that_we_make() -> None:
    text = "3.13.15 experimental free-threading build (ft1-c12:1a2b3c4d5e, Aug  5 2026, 12:25:43) [GCC 12.2.0]"
    parsed = platform._sys_version(text.replace(" experimental free-threading build", ""))
    assert parsed[1] == "3.13.15"
    assert parsed[4:6] == ("ft1-c12:1a2b3c4d5e", "Aug  5 2026 12:25:43")
