"""Async tests where pytest-asyncio is not: Pyodide's loop runs already, and a JavaScript promise waits on it."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test function to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    coroutine: Any = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    if sys.platform == "emscripten":
        from pyodide.ffi import run_sync  # pyright: ignore  (it is there in Pyodide alone)

        run_sync(coroutine)
    else:
        asyncio.run(coroutine)
    return True
