"""What is true only where `host/` and the leaves are deleted; `make test` does not collect it."""

from __future__ import annotations

import importlib
import sys

import pytest

import toolkit_core


def test_this_is_pyodide() -> None:
    assert sys.platform == "emscripten"


@pytest.mark.parametrize("module", ["host", "host.files", "cli", "defaults", "capabilities"])
def test_neither_the_host_nor_a_leaf_is_there(module: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"toolkit_core.{module}")


@pytest.mark.parametrize("name", toolkit_core.__all__)
def test_a_public_name_loads_or_says_that_it_needs_the_host(name: str) -> None:
    try:
        getattr(toolkit_core, name)
    except ModuleNotFoundError as e:
        missing = str(e.name)
    else:
        return

    assert missing.startswith(("toolkit_core.host", "toolkit_core.capabilities", "toolkit_core.defaults"))
