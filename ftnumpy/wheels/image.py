"""The container image with the patched interpreter where cibuildwheel looks for it, made once for what goes in."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ftnumpy import cpython, fingerprint, patchqueue, prerequisites, process, recipe, sources, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.errors import BuildError
from ftnumpy.git import git
from ftnumpy.recipe import Recipe
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, Release, Stack
from ftnumpy.wheels import engine as engines
from ftnumpy.wheels.base import Base
from ftnumpy.wheels.engine import Engine

HERE = Path(__file__).parent
CONTAINERFILE, LIBRARIES, TOOLS = (HERE / name for name in ("Containerfile", "libraries.sh", "tools.sh"))

TREE, STAGE = PurePosixPath("/tree"), PurePosixPath("/stage")
BUILD_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Names:
    """What cibuildwheel and CPython call the free-threaded interpreter of a series: for 3.13 the ``tag`` is cp313t, the
    ``folder`` (in ``/opt/python``) cp313-cp313t and the ``program`` python3.13t."""

    tag: str
    folder: str
    program: str

    @property
    def prefix(self) -> PurePosixPath:
        return PurePosixPath("/opt/python") / self.folder


def names(series: str) -> Names:
    short = f"cp{series.replace('.', '')}"
    return Names(tag=f"{short}t", folder=f"{short}-{short}t", program=f"python{series}t")


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that the engine has.  ``identity`` is the engine's, ``fingerprint`` that of what went into it;
    ``compiler`` is what the C compiler in it says it is."""

    name: str
    identity: str
    fingerprint: str
    base: Base
    compiler: str
    fresh: bool


def get(stack: Stack, settings: Settings, interpreter: Interpreter, engine: Engine, base: Base, log: Path) -> Image:
    """The image on ``base``, found again or made now.

    ``interpreter`` is the patched one of this machine: it fetches the packages.  Raises `BuildError` and what fetching
    raises.
    """
    plan = recipe.read_recipe(stack, stack.cpython, PATCHED, "default", f"{base.name} {base.identity}", {})
    packages = venvs.packages(
        settings,
        interpreter.python,
        stack.numpy.requires,
        what="NumPy's build requirements",
        log=log,
        glibc=base.glibc,
    )
    files = {file.name: patchqueue.sha256(file) for file in (CONTAINERFILE, LIBRARIES, TOOLS)}
    # What isn't known yet follows from the patches, or makes no difference.
    script = _script(plan, names(stack.series), "JOBS", cpython.tag_of(stack, plan), "COMMIT", "EPOCH")
    inputs = plan.inputs(interpreter.release) | files | {"compile": script, "requires": " ".join(stack.numpy.requires)}
    identity = fingerprint.fingerprint(inputs)
    name = f"localhost/ftnumpy-{stack.local_version}:{identity[:16]}"
    with fingerprint.lock(settings, f"image-{identity[:16]}"):
        fresh = engines.image_id(engine, name) is None
        if fresh:
            _make(stack, settings, plan, interpreter.release, engine, base, packages, name, log)
    made = engines.image_id(engine, name)
    if made is None:
        raise BuildError(f"{engine.name} has made {name} and no longer has it (log: {log}); run again")
    return Image(
        name=name, identity=made, fingerprint=identity, base=base, compiler=_compiler(engine, name), fresh=fresh
    )


def _make(
    stack: Stack,
    settings: Settings,
    plan: Recipe,
    release: Release,
    engine: Engine,
    base: Base,
    packages: Path,
    name: str,
    log: Path,
) -> None:
    settings.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="image-", dir=settings.work))
    # It gets its name when it has been looked at.
    untried = f"{name}-untried"
    try:
        commit, tag = _fill(stack, settings, plan, release, packages, work, log)
        engines.run(
            engine,
            [
                *("build", *engine.arguments, f"--build-arg=BASE={base.name}", f"--tag={untried}"),
                # docker looks for a Dockerfile.
                *(f"--file={work / 'context' / CONTAINERFILE.name}", work / "context"),
            ],
            what=f"{engine.name}: make {name}",
            log=log,
            timeout=BUILD_SECONDS,
        )
        called = names(stack.series)
        python = [engine.name, "run", "--rm", *engine.arguments, untried, str(called.prefix / "bin" / called.program)]
        cpython.inspect(python, release, tag, commit, False, log)
        engines.run(engine, ["tag", untried, name], what=f"{engine.name}: name {name}", log=log)
    finally:
        engines.ask(engine, ["rmi", untried])
        shutil.rmtree(work, ignore_errors=True)


def _fill(
    stack: Stack, settings: Settings, plan: Recipe, release: Release, packages: Path, work: Path, log: Path
) -> tuple[str, str]:
    """Make the folder ``context`` in ``work``; returns the commit of the patched sources and the queue's tag."""
    context = work / "context"
    context.mkdir()
    tree = work / "tree"
    patchqueue.make_tree(sources.fetch(release, stack.channels, settings).path, plan.patches, tree)
    commit = git(tree, "rev-parse", "--short=10", "HEAD").decode().strip()
    epoch = git(tree, "log", "-1", "--format=%ct").decode().strip()
    process.run(
        ["tar", "-C", tree, "--exclude=./.git", "--owner=0", "--group=0", "-cf", context / "tree.tar", "."],
        what="pack CPython's sources",
        log=log,
    )
    tag = cpython.tag_of(stack, plan)
    called = names(stack.series)
    script = _script(plan, called, str(settings.jobs), tag, commit, epoch)
    (context / "compile.sh").write_text(script, encoding="utf-8")
    words = {
        "@FOLDER@": [called.folder],
        "@PYTHON@": [called.program],
        "@PIP@": [f"pip{stack.series}"],
        "@PACKAGES@": prerequisites.packages("dnf", [need for need in prerequisites.NEEDS if not need.optional]),
        "@REQUIRES@": stack.numpy.requires,
    }
    for file in (CONTAINERFILE, LIBRARIES, TOOLS):
        text = file.read_text(encoding="utf-8")
        for placeholder, meant in words.items():
            text = text.replace(placeholder, shlex.join(meant))
        (context / file.name).write_text(text, encoding="utf-8")
    shutil.copytree(packages, context / "packages", ignore=shutil.ignore_patterns("*.json"))
    return commit, tag


def _script(plan: Recipe, called: Names, jobs: str, tag: str, commit: str, epoch: str) -> str:
    """The shell script that compiles and installs the patched CPython below `STAGE`, with its final prefix."""
    variables = cpython.make_variables(tag, commit, Path(TREE))
    configure = ["./configure", f"--prefix={called.prefix}", *plan.options]
    # As in ftnumpy/cpython.py: the date is for the compilation alone.
    compile_ = ["env", f"SOURCE_DATE_EPOCH={epoch}", "make", f"-j{jobs}", *variables]
    install = ["make", "install", f"DESTDIR={STAGE}", *variables]
    staged = f"{STAGE}{called.prefix}"
    library = f"{staged}/lib/{called.program}"
    return "\n".join(
        [
            "# Made by ftnumpy/wheels/image.py.",
            "set -e",
            f"mkdir {TREE}",
            f"tar -C {TREE} -xf /ftnumpy/tree.tar",
            f"cd {TREE}",
            shlex.join(configure),
            shlex.join(compile_),
            shlex.join(install),
            # Nobody runs CPython's own tests there, or looks for its lines; tests of the patches embed the interpreter.
            f"rm -rf {library}/test",
            f"strip --strip-debug {staged}/bin/{called.program} {library}/lib-dynload/*.so",
            f"strip --strip-debug {staged}/lib/*.a {library}/config-*/*.a",
            "",
        ]
    )


def _compiler(engine: Engine, name: str) -> str:
    answers = (
        engines.ask(engine, ["run", "--rm", *engine.arguments, name, compiler, "--version"])
        for compiler in ("gcc", "g++")
    )
    return "; ".join(answer.stdout.partition("\n")[0].strip() for answer in answers)
