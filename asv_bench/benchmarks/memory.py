"""The most memory that a program has at once (asv's peakmem: the resident size of the whole process)."""

from __future__ import annotations

import threading

import numpy as np


class Memory:
    def peakmem_import(self):
        """The interpreter and NumPy, and nothing else."""

    def peakmem_200_000_small_arrays(self):
        return [np.empty(16) for _ in range(200_000)]

    def peakmem_20_arrays_of_8_mb(self):
        return [np.ones(1_000_000) for _ in range(20)]

    def peakmem_large_arrays_come_and_go(self):
        """Never more than two at once, of many sizes."""
        for number in range(200):
            np.ones(100_000 + 997 * number)

    def peakmem_4_threads_come_and_go(self):
        """Each makes and frees arrays of many sizes, then ends: what ended threads leave is used again."""

        def work():
            for number in range(500):
                np.ones(10 + 37 * number)

        for _ in range(8):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
