"""The wheel holds everything: a package missing from the list in pyproject.toml is left out silently."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IMPORT_ALL = """
import importlib, pathlib, pkgutil, sys
import torchvision  # its operators are the keys of rules
import fx2onnx, fx2onnx.cli
place = pathlib.Path(fx2onnx.__file__).parent
assert place.is_relative_to(sys.prefix), place
for module in pkgutil.walk_packages(fx2onnx.__path__, "fx2onnx."):
    print(importlib.import_module(module.name).__name__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run([*map(str, command)], check=False, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def modules(source: Path) -> set[str]:
    """Every module of a source tree, by the name under which it is imported."""
    tops = {"fx2onnx": "fx2onnx", "fx2onnx.passes": "passes", "fx2onnx.opset": "opset"}
    found = set()
    for package, folder in ((package, source / name) for package, name in tops.items()):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if not any((folder / part).is_symlink() for part in parts):
                found.add(".".join([package, *(p for p in parts if p != "__init__")]))
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "fx2onnx", "passes", "opset"):
        # a copy, with the links in it: setuptools writes build/ and *.egg-info next to what it builds
        run("cp", "-a", ROOT / name, source, cwd=ROOT)
    return source


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source)
    run(*build, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_every_file_once(wheel, source):
    names = zipfile.ZipFile(wheel).namelist()
    files = {
        n.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for n in names if n.endswith(".py")
    }
    assert files == modules(source)
    assert len(names) == len(set(names))
    assert "fx2onnx/py.typed" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_every_module_of_the_installed_wheel_is_imported(wheel, source, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    )
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=tmp_path)
    # torch and the like come from the environment of this test, after what is installed here
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    imported = run(python, "-c", IMPORT_ALL, cwd=tmp_path).split()
    assert {"fx2onnx", *imported} == modules(source)
    assert run(tmp_path / "venv" / "bin" / "fx2onnx", "--version", cwd=tmp_path).startswith("fx2onnx ")
