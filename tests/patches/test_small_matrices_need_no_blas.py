"""Products and factorizations of small matrices don't call BLAS and LAPACK, whose lock all threads share."""

from __future__ import annotations

import pytest
import running
from building import Builder

COUNTED = """
import ctypes
import numpy as np
counter = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "counted_blas")

def calls(function, *operands):
    before = counter.value
    function(*operands)
    return counter.value - before
"""
TYPES = ["f", "d", "F", "D"]


@pytest.mark.patch("patches", "small-matrices")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "function",
    [
        "np.matmul(a, b)",
        "np.dot(a, b)",
        "a @ a.T",
        "np.dot(a, a.T)",
        "np.tensordot(a, b, 1)",
        "np.linalg.multi_dot((a, b, a))",
        "np.einsum('ij,jk->ik', a, b, optimize=True)",
        "np.cov(a)",
    ],
)
def test_products(build: Builder, dtype: str, function: str) -> None:
    """With 4 rows none, with 40 rows one or two, which also shows that they are counted."""
    code = (
        COUNTED
        + f"""
for n in 4, 40:
    a = np.linspace(0.0, 1.0, n * n).reshape(n, n).astype({dtype!r})
    b = a + a.dtype.type(1)
    print([calls(lambda: {function}), n])
    assert (counter.value == 0) == (n == 4), (n, counter.value)
"""
    )
    assert running.python(code, preload=build.library("count_blas"))[1] == 40


@pytest.mark.patch("patches", "small-linear-systems")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "function",
    ["solve(a, a)", "solve(a, a[0])", "inv(a)", "det(a)", "slogdet(a)", "cholesky(a)", "cholesky(a, upper=True)"],
)
def test_factorizations(build: Builder, dtype: str, function: str) -> None:
    """With 7 rows none, with 9 one."""
    code = (
        COUNTED
        + f"""
for n in 7, 9:
    a = (np.eye(n) + 1.0 / n).astype({dtype!r})
    print([calls(lambda: np.linalg.{function}), n])
    assert counter.value == (n == 9), (n, counter.value)
"""
    )
    assert running.python(code, preload=build.library("count_blas")) == [1, 9]
