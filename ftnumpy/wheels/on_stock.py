"""The wheel on upstream's own interpreter: what needs ours falls back there, the rest must hold."""

from __future__ import annotations

from pathlib import Path

from ftnumpy import suites, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

SECONDS = 1200.0


def try_it(
    stack: Stack, settings: Settings, interpreter: Interpreter, wheel: Wheel, patches: list[str], log: Path
) -> str:
    """Run the tests of NumPy's ``patches`` with ``wheel`` on ``interpreter``, stock's; returns what pytest said last.

    Raises `TestsFailed` when one fails, and what installing raises.
    """
    python = venvs.make_venv(
        settings,
        interpreter.python,
        settings.root / ".build" / "stock-wheel",
        [wheel.path, *stack.test_requires],
        what="the wheel on stock's interpreter",
        log=log,
    )
    return suites.trial(
        [
            *(python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=600"),
            *(f"--applied={','.join(patches)}", "tests/patches"),
        ],
        what="NumPy's patches on stock's interpreter",
        folder=settings.root,
        log=log,
        timeout=SECONDS,
    )
