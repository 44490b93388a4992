"""Arrays with equal dtypes have one instance, which nobody counts; all other dtypes stay their owners'."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import running

pytestmark = pytest.mark.patch("patches", "share-the-instance")

IMMORTAL = sys.getrefcount(None)


@pytest.mark.parametrize("kind", ["f8", ">f8", "c8", "M8[ms]", "m8[D]", "S8", "U8", ">U8", "O", "?"])
def test_of_one_pickle(kind: str) -> None:
    code = f"""
        import pickle, sys
        import numpy as np
        array = np.zeros(3, {kind!r})
        for protocol in (2, 4, 5):
            loaded = pickle.loads(pickle.dumps(array, protocol))
            again = pickle.loads(pickle.dumps(array, protocol))
            assert loaded.dtype is again.dtype
            assert sys.getrefcount(loaded.dtype) == sys.getrefcount(None)
            assert (loaded == array).all()
    """
    running.python(code)


def test_views_and_what_is_made_of_them() -> None:
    array = np.arange(6).astype(">i4")
    for other in (array[::2], array.reshape(2, 3), array.copy(), np.empty_like(array), array.view(np.dtype(">i4"))):
        assert other.dtype is array.dtype
    array.dtype = np.dtype("i4").newbyteorder()
    assert array.dtype is np.zeros(1, ">i4").dtype


def test_what_a_user_makes_stays_the_user_s() -> None:
    for dtype in (
        np.dtype("f8", metadata={"unit": "m"}),
        np.dtype([("x", "f8")]),
        np.dtype({"names": ["x"], "formats": ["f8"], "offsets": [8]}),
        np.dtype((np.int32, {"real": (np.int16, 0), "imag": (np.int16, 2)})),
        np.dtype("U65"),
        np.dtype("M8[5m]"),
    ):
        array = np.zeros(3, dtype)
        assert array.dtype is dtype
        assert np.zeros(2, dtype)[:1].dtype is dtype
        assert sys.getrefcount(dtype) != IMMORTAL


@pytest.mark.parametrize(("first", "second"), [("c", "S1"), ("S1", "c")])
def test_characters_are_not_strings(first: str, second: str) -> None:
    """The two dtypes are equal, whichever of them an array had first."""
    code = f"""
        import numpy as np
        for kind in ({first!r}, {second!r}):
            assert np.zeros(1, kind).dtype.char == kind[0], kind
        assert np.array("ab", dtype="c").shape == (2,)
    """
    running.python(code)


def test_threads_agree_on_first_use() -> None:
    code = """
        import threading
        import numpy as np
        kinds = [f"{order}{kind}" for order in "<>" for kind in ("i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")]
        kinds += [f"{kind}{length}" for kind in ("S", "<U", ">U") for length in range(1, 65)]
        kinds += [f"{kind}8[{unit}]" for kind in "Mm" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")]
        found, barrier = {kind: [] for kind in kinds}, threading.Barrier(8)

        def work():
            for kind in kinds:
                barrier.wait()
                found[kind].append(np.zeros(2, kind).dtype)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for kind, dtypes in found.items():
            assert len(dtypes) == 8 and len(set(map(id, dtypes))) == 1, kind
            assert dtypes[0] == np.dtype(kind)
    """
    running.python(code)
