"""NumPy's wheel by cibuildwheel: built, repaired and tested in a container of our image."""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ftnumpy import numpy_wheel, recipe, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.recipe import Recipe
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, Release, Stack
from ftnumpy.wheels import engine as engines
from ftnumpy.wheels.engine import Engine
from ftnumpy.wheels.image import Image, names

# Goes into the fingerprint: raise it when this file changes what it makes.
REVISION = "1"

SECONDS = 5400.0
STRESS_SECONDS = 10

IMPORT = "import sys, numpy, numpy.fft, numpy.linalg, numpy.random; assert not sys._is_gil_enabled()"


def wheel(
    stack: Stack,
    settings: Settings,
    profile: str,
    interpreter: Interpreter,
    engine: Engine,
    image: Image,
    patches: Sequence[str],
    log: Path,
) -> Wheel:
    """The patched wheel, found again or built now.

    ``interpreter`` is this machine's patched one, which fetches the packages and has a look at the result; ``patches``
    are the applied ones as `suites.applied` gives them.  Raises `BuildError` and what fetching raises.
    """
    more = {
        "revision": REVISION,
        "image": image.fingerprint,
        "requires": " ".join(stack.numpy.requires),
    }
    plan = recipe.read_recipe(stack, stack.numpy, PATCHED, profile, image.compiler, more)
    built = recipe.make(
        settings,
        plan,
        lambda archive, release, work, _: _build(
            stack, settings, plan, interpreter, engine, image, patches, archive, release, work, log
        ),
    )
    return Wheel(
        path=numpy_wheel.only_wheel(built.folder),
        version=numpy_wheel.version_of(plan, built.release),
        fingerprint=built.fingerprint,
        fresh=built.fresh,
    )


def _build(
    stack: Stack,
    settings: Settings,
    plan: Recipe,
    interpreter: Interpreter,
    engine: Engine,
    image: Image,
    patches: Sequence[str],
    archive: Path,
    release: Release,
    work: Path,
    log: Path,
) -> Path:
    project, finished = work / "project", work / "wheel"
    project.mkdir()
    epoch = numpy_wheel.make_tree(plan, archive, release, project / "numpy")
    _add_tests(settings, project)
    packages = venvs.packages(
        settings,
        interpreter.python,
        [*stack.test_requires, *stack.container_requires],
        what="packages for the wheel's tests",
        log=log,
        glibc=image.base.glibc,
    )
    shutil.copytree(packages, project / "packages", ignore=shutil.ignore_patterns("*.json"))
    config = project / "cibuildwheel.toml"
    config.write_text(configuration(plan, stack.test_requires, engine, image, settings.jobs, patches), encoding="utf-8")
    engines.run_command(
        [
            *(
                sys.executable,
                "-m",
                "cibuildwheel",
                "--only",
                f"{names(stack.series).tag}-manylinux_{platform.machine()}",
            ),
            *("--config-file", config, "--output-dir", finished, "numpy"),
        ],
        engine,
        what=f"NumPy {numpy_wheel.version_of(plan, release)} in a container",
        log=log,
        cwd=project,
        timeout=SECONDS,
        more=epoch,
    )
    built = numpy_wheel.only_wheel(finished)
    numpy_wheel.inspect(settings, interpreter, None, built, numpy_wheel.version_of(plan, release), work / "trial", log)
    return finished


def _add_tests(settings: Settings, project: Path) -> None:
    """What `configuration` lets the container run, in the places that it has in a checkout."""
    for folder in ("tests/patches", "tests/stress"):
        shutil.copytree(settings.root / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for queue in ("patches", "cpython-patches"):
        (project / queue).mkdir()
        shutil.copyfile(settings.root / queue / "series", project / queue / "series")


def configuration(
    plan: Recipe, test_requires: Sequence[str], engine: Engine, image: Image, jobs: int, patches: Sequence[str]
) -> str:
    """cibuildwheel's configuration, as TOML."""
    test = "python -I -m pytest -p no:cacheprovider -q --timeout=600"
    commands = [
        f"python -I -W error -c {shlex.quote(IMPORT)}",
        f"{test} --applied={','.join(patches)} {{project}}/tests/patches",
        f"python {{project}}/tests/stress/kernel.py --seconds {STRESS_SECONDS} --seed 1",
    ]
    settings = {
        "build-frontend": {"name": "pip", "args": ["--no-build-isolation"]},
        "config-settings": {
            "build-dir": "build",
            "setup-args": list(plan.options),
            "compile-args": f"-j{jobs}",
        },
        "build-verbosity": 1,
        # All that is installed lies in the project: a container needs no network, no certificates, no configuration.
        "dependency-versions": "latest",
        "environment": {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": "/project/packages",
            "PKG_CONFIG_PATH": "/ftnumpy/pkg-config",
            # NumPy's version names the tree's commit, and the tree belongs to another user than the container's.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        },
        "repair-wheel-command": "auditwheel repair --plat auto --only-plat --wheel-dir {dest_dir} {wheel}",
        "test-requires": list(test_requires),
        "test-command": commands,
        "container-engine": {
            "name": engine.name,
            "create-args": list(engine.arguments),
            "disable-host-mount": True,
        },
        f"manylinux-{platform.machine()}-image": image.name,
    }
    return "".join(["[tool.cibuildwheel]\n", *(f"{name} = {_toml(value)}\n" for name, value in settings.items())])


def _toml(value: object) -> str:
    """For strings, whole numbers, truth values, lists and tables of such."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
