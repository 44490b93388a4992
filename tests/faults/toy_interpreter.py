"""What the toy series builds for CPython: answers the few commands that the toolchain gives an interpreter.

It makes environments, installs and builds wheels in a hundredth of a second, and every step first tells ``phase``, a
program on PATH, what it is: there a test can hold or kill the run.  The makefile replaces the words in capitals.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

VERSION, BUILD = "@VERSION@", "@BUILD@"


def phase(name: str) -> None:
    subprocess.run(["phase", name], check=True)


def prefix() -> Path:
    return Path(sys.argv[0]).absolute().parent.parent


def site() -> Path:
    return prefix() / "lib" / "python3.13t" / "site-packages"


def main(arguments: list[str]) -> None:
    match arguments:
        case ["-IB", "-c", _, *_]:
            answer = {"version": VERSION, "build": BUILD, "gil": False, "flags": "-O3 -DNDEBUG", "missing": []}
            print(json.dumps(answer))
        case ["-I", "-c", _]:
            inspect_numpy()
        case ["-c", code] if "scipy_openblas64" in code:
            print("Name: scipy-openblas")
        case ["-m", "venv", "--clear", folder]:
            make_environment(Path(folder))
        case ["-m", "pip", "download", *options]:
            download(options)
        case ["-m", "pip", "install", *options]:
            install(options)
        case ["-m", "pip", "wheel", *options]:
            phase("wheel")
            build_wheel(Path(options[options.index("--wheel-dir") + 1]))
        case ["-m", "auditwheel", "repair", *options]:
            phase("repair")
            target = Path(options[options.index("--wheel-dir") + 1])
            target.mkdir()
            shutil.copy(next(word for word in options if word.endswith(".whl")), target)
        case _:
            raise SystemExit(f"the toy interpreter does not know {arguments}")


def inspect_numpy() -> None:
    (info,) = site().glob("numpy-*.dist-info")
    version = info.name.removeprefix("numpy-").removesuffix(".dist-info")
    blas = "scipy-openblas"
    print(json.dumps({"version": version, "metadata": version, "blas": blas, "lapack": blas, "gil": False, "dot": 1e3}))


def make_environment(folder: Path) -> None:
    if folder.exists():
        for child in folder.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    (folder / "bin").mkdir(parents=True)
    phase(f"venv {folder.name}")
    (folder / "lib" / "python3.13t" / "site-packages").mkdir(parents=True)
    shutil.copy(sys.argv[0], folder / "bin" / "python")


def download(options: list[str]) -> None:
    phase("download")
    folder = Path(options[options.index("--dest") + 1])
    for word in options:
        if "==" in word:
            name, version = word.split("==")
            write_wheel(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", {f"{name}.py": b"# toy\n"})


def install(options: list[str]) -> None:
    links = [Path(options[at + 1]) for at, word in enumerate(options) if word == "--find-links"]
    wheels = [Path(word) for word in options if word.endswith(".whl")]
    for word in options:
        if "==" in word:
            name, version = word.split("==")
            found = [file for link in links for file in link.glob(f"{name.replace('-', '_')}-{version}-*.whl")]
            if not found:
                raise SystemExit(f"ERROR: No matching distribution found for {word}")
            wheels.append(found[0])
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as file:
            # One half before the hold and one after it.
            names = file.namelist()
            file.extractall(site(), names[:1])
            phase(f"pip {prefix().name}")
            file.extractall(site(), names[1:])


def build_wheel(folder: Path) -> None:
    folder.mkdir()
    text = Path("pyproject.toml").read_text(encoding="utf-8")
    (version,) = (line.split('"')[1] for line in text.splitlines() if line.startswith("version = "))
    files = {"numpy/__init__.py": Path("numpy/__init__.py").read_bytes(), "numpy/core.so": bytes(100_000)}
    write_wheel(folder / f"numpy-{version}-cp313-cp313t-linux_x86_64.whl", files)


def write_wheel(file: Path, files: dict[str, bytes]) -> None:
    name, version = file.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    record = "".join(f"{path},sha256={hashlib.sha256(data).hexdigest()},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(file, "w") as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)


main(sys.argv[1:])
