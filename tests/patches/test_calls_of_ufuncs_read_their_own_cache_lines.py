"""What every call of a ufunc reads lies on no line with small blocks that a thread writes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

pytestmark = [pytest.mark.patch("patches", "calls-of-a-ufunc"), pytest.mark.patch("cpython-patches", "raw-domain")]

# Offsets in a PyUFuncObject, behind the head of an object.
ARRAYS = {"core_num_dims": 96, "core_dim_ixs": 104, "core_offsets": 112, "op_flags": 160}


@pytest.mark.parametrize("ufunc", ["np.vecdot", "np.matmul", "np.fft._pocketfft_umath.rfft_n_even"])
def test_they_begin_a_line(ufunc: str) -> None:
    places = {name: id(eval(ufunc, {"np": np})) + object.__basicsize__ + offset for name, offset in ARRAYS.items()}
    addresses = {name: ctypes.c_void_p.from_address(place).value or 0 for name, place in places.items()}
    assert all(addresses.values()) and not any(address % 64 for address in addresses.values()), addresses
