"""What single calls cost on one thread, in the twelve classes of work that the scaling curves show, too.

No class has ``setup``: asv would run it before every call and time each call alone, which is too coarse for calls that
take less than a microsecond.  Data is made with the object, so that each object, and so each thread, has its own.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np

# asv compares only results of one version; what a benchmark's data is changes what it measures as well.
version = sha256(Path(__file__).read_bytes()).hexdigest()


def kernel(x, n_loop):
    """From "Scaling NumPy on Free-Threaded Python" (Quansight Labs, 2026)."""
    return sum(np.sin(np.cos(np.sin(np.cos(x + i)))).sum() for i in range(n_loop))


class Article:
    """The article's kernel on one of its arrays, and on a small one, where nothing but the overhead is left."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.x = rng.random(500)
        self.small = rng.random(10)

    def time_kernel_10(self):
        kernel(self.x, 10)

    def time_kernel_50(self):
        kernel(self.x, 50)

    def time_kernel_10_small(self):
        kernel(self.small, 10)


class SmallOperators:
    def __init__(self):
        self.a = np.linspace(0.0, 1.0, 16)
        self.b = np.linspace(1.0, 2.0, 16)
        self.out = np.empty(16)

    def time_add(self):
        self.a + self.b

    def time_add_ufunc(self):
        np.add(self.a, self.b)

    def time_add_into(self):
        np.add(self.a, self.b, out=self.out)

    def time_multiply_by_float(self):
        self.a * 2.5

    def time_compare(self):
        self.a < self.b

    def time_sin(self):
        np.sin(self.a)

    def time_negative(self):
        -self.a


class MixedTypes:
    def __init__(self):
        self.floats = np.linspace(0.0, 1.0, 16)
        self.singles = self.floats.astype(np.float32)
        self.integers = np.arange(16)
        self.bytes = np.arange(16, dtype=np.uint8)

    def time_add_float_integer(self):
        self.floats + self.integers

    def time_add_single_byte(self):
        self.singles + self.bytes

    def time_divide_integers(self):
        self.integers / self.bytes

    def time_astype(self):
        self.integers.astype(np.float64)

    def time_result_type(self):
        np.result_type(np.float32, np.int64)


class Scalars:
    def __init__(self):
        self.x = np.float64(0.5)
        self.y = np.float64(1.5)
        self.n = np.int64(3)

    def time_add(self):
        self.x + self.y

    def time_add_integer_float(self):
        self.n + 0.5

    def time_sin(self):
        np.sin(self.x)

    def time_make(self):
        np.float64(0.25)


class Reductions:
    def __init__(self):
        rng = np.random.default_rng(2)
        self.a = rng.random(100)
        self.table = rng.random((20, 20))

    def time_sum(self):
        self.a.sum()

    def time_add_reduce(self):
        np.add.reduce(self.a)

    def time_mean(self):
        np.mean(self.a)

    def time_std(self):
        np.std(self.a)

    def time_max_axis(self):
        self.table.max(axis=0)

    def time_median(self):
        np.median(self.a)


class Indexing:
    def __init__(self):
        rng = np.random.default_rng(3)
        self.a = rng.random(1000)
        self.where = rng.integers(0, 1000, 50)
        self.mask = self.a > 0.9

    def time_item(self):
        self.a[17]

    def time_slice(self):
        self.a[10:100:3]

    def time_set_slice(self):
        self.a[10:100] = 1.0

    def time_fancy(self):
        self.a[self.where]

    def time_set_fancy(self):
        self.a[self.where] = 2.0

    def time_boolean(self):
        self.a[self.mask]

    def time_where(self):
        np.where(self.mask, self.a, 0.0)


class Sorting:
    def __init__(self):
        rng = np.random.default_rng(4)
        self.a = rng.random(200)
        self.sorted = np.sort(self.a)
        self.words = rng.integers(0, 50, 200)

    def time_sort(self):
        np.sort(self.a)

    def time_argsort(self):
        np.argsort(self.a)

    def time_searchsorted(self):
        np.searchsorted(self.sorted, self.a)

    def time_unique(self):
        np.unique(self.words)


class LinearAlgebra:
    def __init__(self):
        rng = np.random.default_rng(5)
        self.m = rng.random((8, 8)) + np.eye(8)
        self.v = rng.random(8)

    def time_matmul(self):
        self.m @ self.m

    def time_dot(self):
        np.dot(self.v, self.v)

    def time_solve(self):
        np.linalg.solve(self.m, self.v)

    def time_inverse(self):
        np.linalg.inv(self.m)

    def time_einsum(self):
        np.einsum("ij,j->i", self.m, self.v)


class Fourier:
    def __init__(self):
        self.a = np.random.default_rng(6).random(128)

    def time_fft(self):
        np.fft.fft(self.a)

    def time_rfft(self):
        np.fft.rfft(self.a)


class RandomNumbers:
    def __init__(self):
        self.rng = np.random.default_rng(7)

    def time_random(self):
        self.rng.random(100)

    def time_normal(self):
        self.rng.normal(size=100)

    def time_integers(self):
        self.rng.integers(0, 10, 100)

    def time_generator(self):
        np.random.default_rng(7)


class Allocation:
    def __init__(self):
        self.kept = np.arange(8.0)

    def time_empty_small(self):
        np.empty(16)

    def time_zeros_small(self):
        np.zeros(16)

    def time_array_of_three(self):
        np.array([1.5, 2.5, 3.5])

    def time_copy_small(self):
        self.kept.copy()

    def time_concatenate(self):
        np.concatenate((self.kept, self.kept))

    def time_ones_300_kib(self):
        np.ones(37_500)

    def time_ones_2_mib(self):
        np.ones(262_144)


class OtherTypes:
    def __init__(self):
        rng = np.random.default_rng(8)
        self.points = np.zeros(50, dtype=[("x", "f8"), ("y", "f8"), ("n", "i4")])
        self.days = np.datetime64("2026-01-01") + rng.integers(0, 365, 50)
        self.words = np.array([f"word {number}" for number in range(50)])
        self.counts = np.zeros(20)
        self.where = rng.integers(0, 20, 100)

    def time_field(self):
        self.points["x"] + self.points["y"]

    def time_days_between(self):
        self.days - self.days[0]

    def time_strings_equal(self):
        self.words == "word 7"

    def time_strings_upper(self):
        np.strings.upper(self.words)

    def time_add_at(self):
        np.add.at(self.counts, self.where, 1.0)
