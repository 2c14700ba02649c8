"""One mutant against tests: in a forked process that has pytest loaded and the library not yet."""

from __future__ import annotations

import importlib.machinery
import os
import signal
import sys
import time
from pathlib import Path
from types import CodeType
from typing import Literal

import pytest

Outcome = Literal["killed", "survived", "timeout"]

_POLL_SECONDS = 0.02


def preload() -> None:
    """Load what the tests need and what is not under test; every child inherits it."""
    for name in (
        "hypothesis",
        "pydantic",
        "jsonschema",
        "httpcore",
        "pytest_asyncio",
        "pytest_timeout",
        "html_to_markdown",
    ):
        __import__(name)


def run(path: Path, source: str, tests: list[str], *, within_seconds: float) -> Outcome:
    """Whether the tests notice the module at `path` having this source. No file is changed."""
    child = os.fork()
    if child == 0:
        os._exit(_child(path, source, tests))
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(_POLL_SECONDS)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _child(path: Path, source: str, tests: list[str]) -> int:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _serve(path, source)
    options = [
        "-x",
        "-q",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-p",
        "no:xdist",
        "-p",
        "no:randomly",
        "--hypothesis-seed=0",
        "--no-header",
        "--tb=no",
    ]
    try:
        return int(pytest.main([*options, *tests]))
    except BaseException:  # noqa: BLE001 - a mutant may raise anything; that is noticed
        return 1


def _serve(path: Path, source: str) -> None:
    """The mutant's code instead of the file's, for this process."""
    whole = importlib.machinery.SourceFileLoader.get_code
    wanted = os.fspath(path)

    def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        if os.path.realpath(self.path) == wanted:
            return compile(source, wanted, "exec", dont_inherit=True)
        return whole(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code  # pyright: ignore[reportAttributeAccessIssue]  (it is a method like any)
    assert not any(name.startswith("toolkit_") for name in sys.modules), "the library must load in the child"
