"""Packages of others, as upstream made them, on our interpreter and with our NumPy: one small piece of work of each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ftnumpy import compiler, venvs
from ftnumpy.cpython import Interpreter
from ftnumpy.errors import TestsFailed
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

# Run by an environment that has them; prints each package's version as JSON.  A package that would bring the GIL back
# fails by the interpreter's warning of it.
WORK = """
import importlib.metadata, io, json, sys, warnings
warnings.filterwarnings("error", message=".*global interpreter lock.*")
import numpy as np

def matplotlib():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    figure = Figure()
    figure.subplots().plot(np.sin(np.arange(100)))
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    return picture.getvalue().startswith(b"\\x89PNG")

def pandas():
    from pandas import DataFrame
    frame = DataFrame({"key": [1, 2, 1], "value": np.arange(3.0)})
    return frame.groupby("key")["value"].sum().tolist() == [2.0, 1.0]

def pyarrow():
    import pyarrow.compute
    return pyarrow.compute.sum(pyarrow.array(np.arange(10))).as_py() == 45

def scikit_learn():
    from sklearn.linear_model import LinearRegression
    column = np.arange(10.0)[:, None]
    return np.allclose(LinearRegression().fit(column, 3 * column[:, 0] + 1).coef_, 3)

def scipy():
    import scipy.fft, scipy.linalg
    matrix = np.random.default_rng(1).random((50, 50))
    solved = np.allclose(scipy.linalg.solve(matrix, matrix @ np.ones(50)), 1)
    return solved and np.allclose(scipy.fft.ifft(scipy.fft.fft(matrix)), matrix)

versions = {}
for work in (matplotlib, pandas, pyarrow, scikit_learn, scipy):
    if not work():
        sys.exit(f"{work.__name__} gives a wrong result")
    if sys._is_gil_enabled():
        sys.exit(f"{work.__name__} brings the GIL back")
    versions[work.__name__] = importlib.metadata.version(work.__name__.replace("_", "-"))
print(json.dumps(versions))
"""


def try_them(stack: Stack, settings: Settings, interpreter: Interpreter, wheel: Wheel, log: Path) -> dict[str, str]:
    """Install and use them; returns their versions.

    Raises `TestsFailed` when one fails, and what installing raises.
    """
    folder = settings.root / ".build" / "patched-others"
    python = venvs.make_venv(
        settings,
        interpreter.python,
        folder,
        [wheel.path, *stack.others_requires],
        what="packages of others",
        log=log,
        exact=True,
    )
    done = subprocess.run(
        [python, "-I", "-c", WORK],
        capture_output=True,
        text=True,
        env=compiler.clean_environment(),
        check=False,
    )
    if done.returncode != 0:
        raise TestsFailed(f"a package of others fails in {folder}:\n{done.stderr.strip()}")
    versions: dict[str, str] = json.loads(done.stdout)
    return versions
