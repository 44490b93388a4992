"""The wheel on upstream's own interpreter: what needs ours falls back there, the rest must hold."""

from __future__ import annotations

from pathlib import Path

from ftnumpy import compiler, process, suites, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.errors import BuildError, TestsFailed
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
    try:
        process.run(
            [
                *(python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=600"),
                *(f"--applied={','.join(patches)}", "tests/patches"),
            ],
            what="NumPy's patches on stock's interpreter",
            log=log,
            cwd=settings.root,
            env=compiler.clean_environment(),
            timeout=SECONDS,
        )
    except BuildError as error:
        raise TestsFailed(str(error)) from None
    return suites.pytest_closing(log.read_text(encoding="utf-8", errors="replace")) or "nothing ran"
