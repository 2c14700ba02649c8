"""What tests with a real browser share: a folder of their own, and what is left in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core import ToolError
from toolkit_core.host.browser_process import find_browser


def _has_browser() -> bool:
    try:
        return bool(find_browser())
    except ToolError:
        return False


def own_folder(monkeypatch: pytest.MonkeyPatch, factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary folder of the test's own, short enough for Chromium's sockets."""
    require(_has_browser(), "no Chromium on this machine")
    factory.getbasetemp()  # pytest's own folder is not to lie in this one
    made = Path(tempfile.mkdtemp(prefix="tkt-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    yield made
    shutil.rmtree(made)


def leftovers() -> list[str]:
    """Profiles in the test's folder, and processes that name one."""
    folder = tempfile.gettempdir()
    found = [str(path) for path in Path(folder).iterdir()]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in command:
            found.append(f"{entry.parent.name}: {command[:100]!r}")
    return found
