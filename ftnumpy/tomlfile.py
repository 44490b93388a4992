"""A TOML file that users may edit, read with one clear error for what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ftnumpy.errors import UsageError


def read(file: Path) -> dict[str, Any]:
    """What ``file`` says.  Raises `UsageError` when it can't be read, or is no TOML."""
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
