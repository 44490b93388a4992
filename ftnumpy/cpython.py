"""A variant's interpreter: CPython, free-threaded but for one variant, optimised, with pip."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, patchqueue, prerequisites, process, recipe
from ftnumpy.errors import BuildError
from ftnumpy.git import git
from ftnumpy.recipe import Recipe
from ftnumpy.settings import Settings
from ftnumpy.stack import Release, Stack, Variant

# Goes into the fingerprint: raise it when this file changes what it makes.
REVISION = "1"

# Under ThreadSanitizer it takes a quarter of an hour to compile the whole library to .pyc files; the top level will do.
FEW_PYC = ("COMPILEALL_OPTS=-j0 -r0",)

# Modules that configure leaves out in silence when a library is missing.
MODULES = ("ssl", "zlib", "ctypes", "lzma", "bz2", "sqlite3", "pip")

# Run by the new interpreter; prints what it found as JSON.
INSPECTION = """
import importlib, json, platform, sys, sysconfig
missing = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
print(json.dumps({
    "version": platform.python_version(),
    "build": platform.python_build()[0],
    "gil": sys._is_gil_enabled(),
    "flags": sysconfig.get_config_var("PY_CFLAGS"),
    "missing": missing,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A finished CPython.  ``python`` lies under ``prefix``; ``tag`` names the queue in ``sys.version``; ``gil`` says
    that it is not free-threaded."""

    python: Path
    prefix: Path
    fingerprint: str
    release: Release
    tag: str
    fresh: bool
    gil: bool = False


def interpreter(
    stack: Stack, settings: Settings, variant: Variant, profile: str, log: Path, prefix: Path | None = None
) -> Interpreter:
    """The interpreter of ``variant``, found again or built now.

    ``profile`` is one of the profiles of stack.toml.  ``prefix`` is what is compiled in, by default the folder where
    the interpreter is kept; with another one it says the same in every cache, and only its scripts need a new place.
    The commands' output goes to ``log``.  Raises `SourceError`, `PatchError`, `PrerequisiteError` or `BuildError`.
    """
    # The builds' folder is part of the prefix that is compiled in.
    place = {"builds": str(settings.builds)} if prefix is None else {"prefix": str(prefix)}
    more = {"revision": REVISION, **place}
    identity = compiler.identify(settings)
    plan = recipe.read_recipe(stack, stack.cpython, variant, profile, identity, more)
    tag = tag_of(stack, plan)
    built = recipe.make(
        settings,
        plan,
        lambda archive, release, work, final: _build(
            settings, plan, tag, variant, archive, release, work, prefix or final, log
        ),
    )
    return Interpreter(
        python=_python(built.folder, built.release, variant.gil),
        prefix=built.folder,
        fingerprint=built.fingerprint,
        release=built.release,
        tag=tag,
        fresh=built.fresh,
        gil=variant.gil,
    )


def tag_of(stack: Stack, plan: Recipe) -> str:
    """What names the queue in ``sys.version``."""
    return f"{stack.local_version}-c{len(plan.patches)}" if plan.patches else "stock"


def _build(
    settings: Settings,
    plan: Recipe,
    tag: str,
    variant: Variant,
    archive: Path,
    release: Release,
    work: Path,
    prefix: Path,
    log: Path,
) -> Path:
    what = f"CPython {release.version} ({tag})"
    tree, stage = work / "tree", work / "stage"
    patchqueue.make_tree(archive, plan.patches, tree)
    commit = git(tree, "rev-parse", "--short=10", "HEAD").decode().strip()
    epoch = git(tree, "log", "-1", "--format=%ct").decode().strip()
    environment = compiler.environment(settings, work)
    variables = make_variables(tag, commit, tree)
    process.run(
        ["./configure", f"--prefix={prefix}", *plan.options],
        what=f"{what}: configure",
        log=log,
        cwd=tree,
        env=environment,
    )
    process.run(
        ["make", f"-j{settings.jobs}", *variables],
        what=f"{what}: compile",
        log=log,
        cwd=tree,
        env=environment | {"SOURCE_DATE_EPOCH": epoch},
    )
    # Without SOURCE_DATE_EPOCH: with it every import would read and hash the source that belongs to a .pyc file.
    process.run(
        ["make", "install", f"DESTDIR={stage}", *variables, *(FEW_PYC if variant.build == "tsan" else ())],
        what=f"{what}: install",
        log=log,
        cwd=tree,
        env=environment,
    )
    staged = stage / prefix.relative_to(prefix.anchor)
    inspect([_python(staged, release, variant.gil)], release, tag, commit, variant.gil, log)
    return staged


def make_variables(tag: str, commit: str, tree: Path) -> tuple[str, ...]:
    """What make is told for the patched sources in ``tree``, whose last commit is ``commit``."""
    return (
        # sys.version reads "(<tag>:<commit>, <date>, <time>)" and sys._git says the same.
        f"GITVERSION=echo {commit}",
        f"GITTAG=echo {tag}",
        f"GITBRANCH=echo {tag}",
        # A try's work folder belongs neither into debug information nor into ccache's keys.  These flags are for the
        # interpreter itself; extensions that are built with it later don't see them.  Not -ffile-prefix-map: newer
        # compilers apply that to where PGO's counters are written, too.
        f"CFLAGS_NODIST=-fdebug-prefix-map={tree}=.",
    )


def _python(prefix: Path, release: Release, gil: bool) -> Path:
    series = ".".join(release.version.split(".")[:2])
    return prefix / "bin" / f"python{series}{'' if gil else 't'}"


def inspect(python: Sequence[str | Path], release: Release, tag: str, commit: str, gil: bool, log: Path) -> None:
    """Raise `BuildError` unless the interpreter that the command ``python`` starts is what we were to build."""
    answer = subprocess.run(
        [*python, "-IB", "-c", INSPECTION, *MODULES],
        capture_output=True,
        text=True,
        env=compiler.clean_environment(),
        check=False,
    )
    if answer.returncode != 0:
        raise BuildError(f"the new interpreter does not run (log: {log}):\n{answer.stderr.strip()}")
    found = json.loads(answer.stdout)
    if found["missing"]:
        raise BuildError(
            f"the new interpreter lacks {', '.join(found['missing'])}: "
            f"configure found no library for it, or its build failed (log: {log}).\n"
            f"{prerequisites.advice_for_modules(found['missing'])}"
        )
    expected = {"version": release.version, "build": f"{tag}:{commit}", "gil": gil}
    wrong = [f"{name} is {found[name]!r}, not {value!r}" for name, value in expected.items() if found[name] != value]
    wrong += [f"compiled without {flag}" for flag in ("-O3", "-DNDEBUG") if flag not in found["flags"].split()]
    if wrong:
        raise BuildError(f"the new interpreter is not what was asked for: {'; '.join(wrong)} (log: {log})")
