"""Code that may crash runs in a process of its own, as in the patches' tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "patches"))
