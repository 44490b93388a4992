"""Virtual environments of an interpreter that we built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ftnumpy import compiler, process


def make_venv(base: Path, folder: Path, requires: Sequence[str | Path], *, what: str, log: Path) -> Path:
    """A new virtual environment of the interpreter ``base`` in ``folder``, with ``requires`` (names or wheels).

    What was in ``folder`` is lost.  Returns the environment's python.  Raises `CommandFailed`.
    """
    environment = compiler.clean_environment()
    process.run([base, "-m", "venv", "--clear", folder], what=what, log=log, env=environment)
    python = folder / "bin" / "python"
    process.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *requires],
        what=what,
        log=log,
        env=environment,
    )
    return python
