"""A virtual environment with a variant's interpreter and wheel, in the checkout's ``.build`` folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import console, cpython, fingerprint, installed, numpy_wheel, venvs, wheelhouse
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Stack

MARKER = "ftnumpy.json"


@dataclass(frozen=True)
class Environment:
    """A virtual environment in ``folder`` whose ``python`` imports the NumPy of ``wheel``."""

    folder: Path
    python: Path
    interpreter: Interpreter
    wheel: Wheel


def user_environment(stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
    """``.build/<variant>``: interpreter and NumPy, nothing else.  Builds what it needs, a step of ``summary`` each."""
    return _environment(stack, settings, options, summary, suffix="", requires=())


def test_environment(stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
    """``.build/<variant>-test``: the same with what the tests need.  Builds what it needs."""
    return _environment(stack, settings, options, summary, suffix="-test", requires=stack.test_requires)


def upstream_environment(stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
    """``.build/<variant>-upstream``: the same with what upstream's whole suites need.  Builds what it needs."""
    requires = (*stack.test_requires, *stack.upstream_requires)
    return _environment(stack, settings, options, summary, suffix="-upstream", requires=requires)


def bench_environment(
    stack: Stack, settings: Settings, options: Options, summary: Summary, requires: tuple[str, ...]
) -> Environment:
    """``.build/<variant>-bench``: the same with ``requires``, which runs benchmarks.  Builds what it needs.

    Without a NumPy patch the wheel is stock's, whatever the interpreter: what differs then is the interpreter alone.
    """
    return _environment(stack, settings, options, summary, suffix="-bench", requires=requires, share_stock=True)


def _environment(
    stack: Stack,
    settings: Settings,
    options: Options,
    summary: Summary,
    *,
    suffix: str,
    requires: tuple[str, ...],
    share_stock: bool = False,
) -> Environment:
    variant, profile = options.variant, options.profile
    # A run may be killed between its last build and the removal of that one's work; no build may follow.
    fingerprint.clear_abandoned(settings)
    log = options.logs / "cpython.log"
    with summary.step(f"CPython, {variant.name}", log) as result:
        interpreter = cpython.interpreter(stack, settings, variant, profile, log)
        result.append(f"{interpreter.release.version} ({interpreter.tag}), {_how(interpreter.fresh)}")
    log = options.logs / "numpy.log"
    with summary.step(f"NumPy, {variant.name}", log) as result:
        if share_stock and variant.numpy_patches == 0 and not variant.reference:
            builder = cpython.interpreter(stack, settings, STOCK, profile, log)
            wheel = numpy_wheel.wheel(stack, settings, STOCK, profile, builder, log)
        elif variant.build == "tsan":
            # Meson, Cython and pip are Python, which takes ten times as long under ThreadSanitizer.
            builder = cpython.interpreter(stack, settings, PATCHED, profile, log)
            wheel = numpy_wheel.wheel(stack, settings, variant, profile, builder, log)
        else:
            wheel = numpy_wheel.wheel(stack, settings, variant, profile, interpreter, log)
        result.append(f"{wheel.version}, {_how(wheel.fresh)}")
    summary.builds[variant.name] = (interpreter.fingerprint, wheel.fingerprint)
    name = options.environment_name + suffix
    folder = settings.root / ".build" / name
    log = options.logs / f"environment-{name}.log"
    with summary.step(f"environment {folder.relative_to(settings.root)}", log) as result:
        fresh = fill(settings, folder, interpreter, wheel, requires, log)
        result.append(_how(fresh))
    return Environment(folder=folder, python=folder / "bin" / "python", interpreter=interpreter, wheel=wheel)


def _how(fresh: bool) -> str:
    return "made" if fresh else "found again"


def fill(
    settings: Settings, folder: Path, interpreter: Interpreter, wheel: Wheel, requires: tuple[str, ...], log: Path
) -> bool:
    """See that ``folder`` is a virtual environment with exactly these; False when it was one already.

    Its marker, written last and removed first, names what is in it: a killed run leaves no marker.
    """
    wanted = {
        "folder": str(folder),
        "interpreter": interpreter.fingerprint,
        "wheel": wheel.fingerprint,
        "requires": list(requires),
    }
    marker = folder / MARKER
    with fingerprint.lock(settings, f"environment-{fingerprint.fingerprint({'folder': str(folder)})[:16]}"):
        if _read(marker) == wanted:
            damage = installed.damage(folder, [wheel.path, *requires])
            if damage is None:
                return False
            console.warn(f"{folder} was damaged ({damage}); it is made anew")
        marker.unlink(missing_ok=True)
        venvs.make_venv(
            settings,
            interpreter.python,
            folder,
            [wheel.path, *requires],
            what=f"environment {folder.name}",
            log=log,
        )
        part = marker.with_suffix(".part")
        part.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
        part.rename(marker)
    return True


def _read(marker: Path) -> object:
    try:
        return json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def export_wheel(settings: Settings, wheel: Wheel) -> Path:
    """Copy ``wheel`` into the checkout's ``wheelhouse``, in one move; returns the copy."""
    with wheelhouse.opened(settings) as folder:
        return wheelhouse.put(folder / wheel.path.name, wheel.path)
