"""An environment that lost what was installed into it is not taken for whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ftnumpy import installed

WHEEL = Path("wheels/numpy-2.4.6+ft1-cp313-cp313t-linux_x86_64.whl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With numpy 2.4.6+ft1 and typing_extensions 4, of which one compiled module is listed without a size."""
    site = tmp_path / "lib" / "python3.13t" / "site-packages"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    for name, version in (("numpy", "2.4.6+ft1"), ("typing_extensions", "4.15.0")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text("12345")
        record = f"{name}.py,sha256=x,5\n__pycache__/{name}.pyc,,\n"
        (info / "RECORD").write_text(record)
    return tmp_path


def site(folder: Path) -> Path:
    return folder / "lib" / "python3.13t" / "site-packages"


def test_a_whole_one(folder: Path) -> None:
    assert installed.damage(folder, [WHEEL, "typing-extensions==4.15.0"]) is None
    assert installed.damage(folder, ["numpy>=2", "Typing.Extensions"]) is None


def test_what_a_user_installs_besides_is_no_damage(folder: Path) -> None:
    (site(folder) / "mine.py").touch()
    assert installed.damage(folder, [WHEEL]) is None


def test_a_file_is_missing(folder: Path) -> None:
    (site(folder) / "numpy.py").unlink()
    assert installed.damage(folder, [WHEEL]) == "numpy.py of numpy is missing or has another size"


def test_a_file_was_cut_short(folder: Path) -> None:
    (site(folder) / "numpy.py").write_text("123")
    assert installed.damage(folder, [WHEEL]) == "numpy.py of numpy is missing or has another size"


def test_a_package_is_missing(folder: Path) -> None:
    shutil.rmtree(site(folder) / "numpy-2.4.6+ft1.dist-info")
    assert installed.damage(folder, [WHEEL]) == "numpy is missing"
    assert installed.damage(folder, ["typing-extensions", "pytest==8"]) == "pytest is missing"


def test_another_version_stands_in_the_wheels_place(folder: Path) -> None:
    other = WHEEL.with_name(WHEEL.name.replace("+ft1", "+ft2"))
    assert installed.damage(folder, [other]) == "numpy is 2.4.6+ft1, not 2.4.6+ft2"


def test_a_package_lost_its_list(folder: Path) -> None:
    (site(folder) / "numpy-2.4.6+ft1.dist-info" / "RECORD").unlink()
    assert installed.damage(folder, [WHEEL]) == "numpy is missing"


def test_no_python(folder: Path) -> None:
    (folder / "bin" / "python").unlink()
    assert installed.damage(folder, []) == "bin/python is missing"
