"""The session ``wheels``: what a team takes away, made, published and tried."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from ftnumpy import console, cpython, environment, fingerprint, suites
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.git import git_line
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Stack, Variant
from ftnumpy.wheels import archive, base, cibuild, image, on_stock, others, publish, relocate
from ftnumpy.wheels import engine as engines
from ftnumpy.wheels.engine import Engine
from ftnumpy.wheels.image import Image
from ftnumpy.wheels.manifest import Made
from ftnumpy.wheels.wishes import Wishes

MEGABYTE = 1_000_000


def run(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Make what is missing, fill the wheelhouse and try it; returns how to use it.

    Raises `TestsFailed` when a trial fails, and what the steps raise.
    """
    # Before anything long: whether there is an engine at all.
    engine = engines.find() if wishes.container else None
    made_in = None
    if engine is None:
        wheel = environment.user_environment(stack, settings, options, summary).wheel
    else:
        wheel, made_in, engine = _in_container(wishes, stack, settings, options, engine, summary)
    log = options.logs / "movable.log"
    with summary.step("CPython, to be moved", log) as result:
        interpreter = cpython.interpreter(
            stack, settings, options.variant, options.profile, log, prefix=relocate.PREFIX
        )
        result.append(f"{interpreter.release.version} ({interpreter.tag}), {_how(interpreter.fresh)}")
    log = options.logs / "archive.log"
    with summary.step("archive", log) as result:
        packed = archive.archive(settings, interpreter, stack.local_version, log)
        libraries = len(packed.contents.libraries)
        result.append(f"{packed.contents.base}, {libraries} libraries inside, {_how(packed.fresh)}")
    made = Made(
        stack=stack,
        interpreter=interpreter,
        archive=packed,
        wheel=wheel,
        image=made_in,
        engine=engines.version(engine) if engine else None,
        commit=git_line(settings.root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
    )
    with summary.step("wheelhouse") as result:
        folder, products = publish.publish(settings, made, wishes.url)
        result.append(f"{len(products)} files, {sum(product.size for product in products) / MEGABYTE:.0f} MB")
    _try(settings, options, folder, summary)
    log = options.logs / "others.log"
    with summary.step("packages of others", log) as result:
        versions = others.try_them(stack, settings, interpreter, wheel, log)
        result.append(", ".join(f"{name} {version}" for name, version in versions.items()))
    stock = _interpreter(STOCK, stack, settings, options, summary)
    log = options.logs / "stock.log"
    with summary.step("the wheel on stock", log) as result:
        theirs = replace(options.variant, cpython_patches=0)
        result.append(on_stock.try_it(stack, settings, stock, wheel, suites.applied(stack, settings, theirs), log))
    for product in products:
        if "/" not in product.name:
            console.say(f"  {product.sha256}  {product.size:>10}  {product.name}")
    return f"""
pip   pip install --index-url {(folder / publish.INDEX).as_uri()} numpy
uv    UV_PYTHON_DOWNLOADS_JSON_URL={(folder / "downloads.json").as_uri()} uv venv --python 3.13t
      uv pip install --index-url {(folder / publish.INDEX).as_uri()} numpy
How to serve it from a web server: docs/wheels.md"""


def _in_container(
    wishes: Wishes,
    stack: Stack,
    settings: Settings,
    options: Options,
    engine: Engine,
    summary: Summary,
) -> tuple[Wheel, Image, Engine]:
    """The wheel that cibuildwheel makes, the image that it is made in, and the engine as it works here."""
    interpreter = _interpreter(PATCHED, stack, settings, options, summary)
    log = options.logs / "base.log"
    with summary.step("base image", log) as result:
        found, engine = base.get(settings, engine, wishes.image, log)
        result.append(f"{found.name} (glibc {found.glibc}), {engines.version(engine)}")
    log = options.logs / "image.log"
    with summary.step("image with the interpreter", log) as result:
        made = image.get(stack, settings, interpreter, engine, found, log)
        result.append(f"{made.name}, {_how(made.fresh)}")
    log = options.logs / "cibuildwheel.log"
    with summary.step("NumPy in a container", log) as result:
        applied = suites.applied(stack, settings, options.variant)
        wheel = cibuild.wheel(stack, settings, options.profile, interpreter, engine, made, applied, log)
        result.append(f"{wheel.path.name}, {_how(wheel.fresh)}")
    return wheel, made, engine


def _interpreter(variant: Variant, stack: Stack, settings: Settings, options: Options, summary: Summary) -> Interpreter:
    """This machine's own interpreter of ``variant``."""
    fingerprint.clear_abandoned(settings)
    log = options.logs / f"cpython-{variant.name}.log"
    with summary.step(f"CPython, {variant.name}", log) as result:
        interpreter = cpython.interpreter(stack, settings, variant, options.profile, log)
        result.append(f"{interpreter.release.version} ({interpreter.tag}), {_how(interpreter.fresh)}")
    return interpreter


def _how(fresh: bool) -> str:
    return "made" if fresh else "found again"


def _try(settings: Settings, options: Options, folder: Path, summary: Summary) -> None:
    """Install and run what ``folder`` has, in places that lack everything else."""
    log = options.logs / "trial.log"
    with summary.step("trial", log) as result:
        closing = suites.trial(
            [
                *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=600"),
                *(f"--wheelhouse={folder}", "tests/wheels"),
            ],
            what="trial of the wheelhouse",
            folder=settings.root,
            log=log,
            timeout=1800,
        )
        result.append(closing)
