"""How long an import takes in a fresh interpreter."""

from __future__ import annotations


class Importing:
    def timeraw_numpy(self):
        return "import numpy"

    def timeraw_numpy_with_all_parts(self):
        return "import numpy, numpy.fft, numpy.linalg, numpy.ma, numpy.polynomial, numpy.random"
