"""A variant's NumPy wheel: built by the variant's interpreter, with OpenBLAS inside."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, patchqueue, process, recipe, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.errors import BuildError
from ftnumpy.git import git
from ftnumpy.recipe import Recipe
from ftnumpy.settings import Settings
from ftnumpy.stack import Release, Stack, Variant

# Goes into the fingerprint: raise it when this file changes what it makes.
REVISION = "1"

# Never into the wheel: a process can have only one of each, and the interpreter of such a build has it.
SANITIZERS = ("libasan.so.*", "libtsan.so.*", "libubsan.so.*")

# Run with the new wheel installed; prints what it found as JSON.  A warning is an error: importing NumPy must not
# bring the GIL back.
INSPECTION = """
import importlib.metadata, json, sys, warnings
warnings.simplefilter("error")
import numpy
import numpy.fft, numpy.linalg, numpy.random
blas = numpy.show_config(mode="dicts")["Build Dependencies"]
print(json.dumps({
    "version": numpy.__version__,
    "metadata": importlib.metadata.version("numpy"),
    "blas": blas["blas"]["name"],
    "lapack": blas["lapack"]["name"],
    "gil": sys._is_gil_enabled(),
    "dot": float(numpy.dot(numpy.ones(1000), numpy.ones(1000))),
}))
"""


@dataclass(frozen=True)
class Wheel:
    """A finished wheel that stands alone."""

    path: Path
    version: str
    fingerprint: str
    fresh: bool


def wheel(
    stack: Stack, settings: Settings, variant: Variant, profile: str, interpreter: Interpreter, log: Path
) -> Wheel:
    """The wheel of ``variant`` for ``interpreter``, found again or built now.

    ``profile`` is one of the profiles of stack.toml.  The commands' output goes to ``log``.  Raises `SourceError`,
    `PatchError`, `PrerequisiteError` or `BuildError`.
    """
    more = {
        "revision": REVISION,
        "interpreter": interpreter.fingerprint,
        "requires": " ".join(stack.numpy.requires),
    }
    identity = compiler.identify(settings)
    project = stack.reference if variant.reference else stack.numpy
    plan = recipe.read_recipe(stack, project, variant, profile, identity, more)
    built = recipe.make(
        settings,
        plan,
        lambda archive, release, work, _: _build(
            settings, plan, interpreter, variant.build, archive, release, work, log
        ),
    )
    return Wheel(
        path=only_wheel(built.folder),
        version=version_of(plan, built.release),
        fingerprint=built.fingerprint,
        fresh=built.fresh,
    )


def version_of(plan: Recipe, release: Release) -> str:
    return f"{release.version}+{plan.label}" if plan.patches else release.version


def make_tree(plan: Recipe, archive: Path, release: Release, tree: Path) -> dict[str, str]:
    """The patched sources in ``tree``, which calls itself by our version; returns what builds want of them in the
    environment."""
    version = version_of(plan, release)
    patchqueue.make_tree(archive, plan.patches, tree)
    if version != release.version:
        _set_version(tree, release.version, version)
    return {"SOURCE_DATE_EPOCH": git(tree, "log", "-1", "--format=%ct").decode().strip()}


def _build(
    settings: Settings,
    plan: Recipe,
    interpreter: Interpreter,
    build: str | None,
    archive: Path,
    release: Release,
    work: Path,
    log: Path,
) -> Path:
    version = version_of(plan, release)
    what = f"NumPy {version}"
    tree, tools, plain, repaired = (work / name for name in ("tree", "tools", "plain", "repaired"))
    epoch = make_tree(plan, archive, release, tree)
    python = venvs.make_venv(
        settings, interpreter.python, tools, plan.project.requires, what=f"{what}: build tools", log=log
    )
    pkg_config = work / "pkg-config"
    pkg_config.mkdir()
    (pkg_config / "scipy-openblas.pc").write_text(_openblas(python), encoding="utf-8")
    environment = compiler.environment(settings, work, tools / "bin") | epoch
    environment["PKG_CONFIG_PATH"] = str(pkg_config)
    process.run(
        [
            *(python, "-m", "pip", "wheel", ".", "-v", "--no-build-isolation", "--no-deps", "--wheel-dir", plain),
            "-Cbuild-dir=build",
            *(f"-Csetup-args={option}" for option in plan.options),
            f"-Ccompile-args=-j{settings.jobs}",
        ],
        what=f"{what}: compile",
        log=log,
        cwd=tree,
        env=environment,
    )
    process.run(
        [
            *(python, "-m", "auditwheel", "repair", "--plat", "auto", "--wheel-dir", repaired, only_wheel(plain)),
            *(f"--exclude={library}" for library in SANITIZERS),
        ],
        what=f"{what}: put OpenBLAS into the wheel",
        log=log,
        cwd=work,
        env=environment,
    )
    inspect(settings, interpreter, build, only_wheel(repaired), version, work / "trial", log)
    return repaired


def _set_version(tree: Path, release: str, version: str) -> None:
    """Make ``version`` the tree's.

    Metadata and meson's project read it from one line.  numpy.version is generated from the same line, with our tree's
    commit as ``git_revision``, unless a file that a release archive brings stands in its place.
    """
    file = tree / "pyproject.toml"
    text = file.read_text(encoding="utf-8")
    line = f'\nversion = "{release}"\n'
    if text.count(line) != 1:
        raise BuildError(
            f"NumPy's pyproject.toml does not have the one line {line.strip()!r}, so its version can't be set"
        )
    file.write_text(text.replace(line, f'\nversion = "{version}"\n'), encoding="utf-8")
    (tree / "numpy" / "version.py").unlink(missing_ok=True)


def _openblas(python: Path) -> str:
    """The pkg-config file of the OpenBLAS that ``python`` has installed as a package."""
    return subprocess.run(
        [python, "-c", "import scipy_openblas64; print(scipy_openblas64.get_pkg_config())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def only_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"{folder} should have one wheel and has {len(wheels)}; remove the folder and run again")
    return wheels[0]


def inspect(
    settings: Settings,
    interpreter: Interpreter,
    build: str | None,
    path: Path,
    version: str,
    folder: Path,
    log: Path,
) -> None:
    """Raise `BuildError` unless the wheel at ``path`` is what we were to build."""
    python = venvs.make_venv(settings, interpreter.python, folder, [path], what="try the wheel", log=log)
    answer = subprocess.run(
        [python, "-I", "-c", INSPECTION],
        env=compiler.clean_environment() | compiler.preload(settings, build),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise BuildError(f"the new wheel can't be imported (log: {log}):\n{answer.stderr.strip()}")
    expected = {
        "version": version,
        "metadata": version,
        "blas": "scipy-openblas",
        "lapack": "scipy-openblas",
        "gil": interpreter.gil,
        "dot": 1000.0,
    }
    found = json.loads(answer.stdout)
    wrong = [f"{name} is {found[name]!r}, not {value!r}" for name, value in expected.items() if found[name] != value]
    major, minor, *_ = interpreter.release.version.split(".")
    kind, abi = ("CPython with the GIL", "") if interpreter.gil else ("free-threaded CPython", "t")
    if f"-cp{major}{minor}-cp{major}{minor}{abi}-" not in path.name:
        wrong.append(f"the name {path.name} does not say {kind}")
    if wrong:
        raise BuildError(f"the new wheel is not what was asked for: {'; '.join(wrong)} (log: {log})")
