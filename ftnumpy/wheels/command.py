"""The session ``wheels``: what a team takes away, made, published and tried."""

from __future__ import annotations

import sys
from pathlib import Path

from ftnumpy import compiler, console, cpython, environment, process
from ftnumpy.console import Summary
from ftnumpy.errors import BuildError, TestsFailed
from ftnumpy.git import git_line
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack
from ftnumpy.suites import pytest_closing
from ftnumpy.wheels import archive, others, publish, relocate
from ftnumpy.wheels.manifest import Made

MEGABYTE = 1_000_000


def run(url: str | None, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Make what is missing, fill the wheelhouse and try it; returns how to use it.

    ``url`` is where the wheelhouse will be served, None where it is.  Raises `TestsFailed` when a trial fails.
    """
    built = environment.user_environment(stack, settings, options, summary)
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
        wheel=built.wheel,
        commit=git_line(settings.root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
    )
    with summary.step("wheelhouse") as result:
        folder, products = publish.publish(settings, made, url)
        result.append(f"{len(products)} files, {sum(product.size for product in products) / MEGABYTE:.0f} MB")
    _try(settings, options, folder, summary)
    log = options.logs / "others.log"
    with summary.step("packages of others", log) as result:
        versions = others.try_them(stack, settings, interpreter, built.wheel, log)
        result.append(", ".join(f"{name} {version}" for name, version in versions.items()))
    for product in products:
        if "/" not in product.name:
            console.say(f"  {product.sha256}  {product.size:>10}  {product.name}")
    return f"""
pip   pip install --index-url {(folder / publish.INDEX).as_uri()} numpy
uv    UV_PYTHON_DOWNLOADS_JSON_URL={(folder / "downloads.json").as_uri()} uv venv --python 3.13t
      uv pip install --index-url {(folder / publish.INDEX).as_uri()} numpy
How to serve it from a web server: docs/wheels.md"""


def _how(fresh: bool) -> str:
    return "made" if fresh else "found again"


def _try(settings: Settings, options: Options, folder: Path, summary: Summary) -> None:
    """Install and run what ``folder`` has, in places that lack everything else."""
    log = options.logs / "trial.log"
    with summary.step("trial", log) as result:
        try:
            process.run(
                [
                    *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=600"),
                    *(f"--wheelhouse={folder}", "tests/wheels"),
                ],
                what="trial of the wheelhouse",
                log=log,
                cwd=settings.root,
                env=compiler.clean_environment(),
                timeout=1800,
            )
        except BuildError as error:
            raise TestsFailed(str(error)) from None
        result.append(pytest_closing(log.read_text(encoding="utf-8", errors="replace")) or "nothing ran")
