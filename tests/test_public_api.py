"""The public surface: each name and signature as last agreed, documented, and fully typed.

`pytest tests/test_public_api.py --write-public-api` writes the new surface; the difference belongs into CHANGELOG.md.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import require

PACKAGES = ("toolkit_core", "toolkit_langchain", "toolkit_llamaindex")
MODULES = (*PACKAGES, "toolkit_core.notebook", "toolkit_langchain.testing", "toolkit_llamaindex.testing")
AGREED = Path(__file__).with_name("public_api.txt")
SAMPLE = "toolkit_core.cli.sample"
"""The demo's project: somebody else's code, with a bug in it."""


def surface() -> Iterator[str]:
    """A line a name, and a line a public method."""
    for name in MODULES:
        module = importlib.import_module(name)
        for public in sorted(module.__all__):
            value = getattr(module, public)
            yield f"{name}.{public}{_signature(value)}"
            if inspect.isclass(value):
                yield from _members(f"{name}.{public}", value)


def _members(name: str, cls: type) -> Iterator[str]:
    for member in sorted(vars(cls)):
        value = inspect.getattr_static(cls, member)
        plain: Any = getattr(value, "__func__", value)  # of a staticmethod or a classmethod
        if member.startswith("_") or not (inspect.isfunction(plain) or isinstance(value, property)):
            continue
        yield f"  .{member}{_signature(plain)}" if inspect.isfunction(plain) else f"  .{member} (property)"


def _signature(value: Any) -> str:
    if inspect.isclass(value) and value.__init__ is object.__init__:
        return ""
    if not callable(value) or (isinstance(value, type) and getattr(value, "_is_protocol", False)):
        return ""
    try:
        shown = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
        return shown.replace("typing.", "")  # which Pythons put before different names
    except (TypeError, ValueError):
        return ""


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211")
def test_the_public_surface_is_what_was_agreed(request: pytest.FixtureRequest) -> None:
    now = "\n".join(surface()) + "\n"
    if request.config.getoption("--write-public-api"):
        AGREED.write_text(now, encoding="utf-8")

    agreed = AGREED.read_text(encoding="utf-8")
    gone = sorted(set(agreed.splitlines()) - set(now.splitlines()))
    new = sorted(set(now.splitlines()) - set(agreed.splitlines()))
    assert (gone, new) == ([], []), "say so in CHANGELOG.md, then run with --write-public-api"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    values = {name: getattr(module, name) for name in module.__all__}
    documented = {name for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}

    assert [name for name in sorted(documented) if not (values[name].__doc__ or "").strip()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_type_is_known(package: str) -> None:
    program = Path(sys.executable).with_name("pyright")
    require(program.exists(), "pyright (the extra dev)")
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(program), "--outputjson", "--ignoreexternal", "--verifytypes", package]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=False)
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]

    ours = [each for each in symbols if each["isExported"] and not each["name"].startswith(SAMPLE)]
    assert len(ours) > 50, done.stdout[:500]
    assert [each["name"] for each in ours if not each["isTypeKnown"] or each["isTypeAmbiguous"]] == []
