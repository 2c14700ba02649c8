from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import Files
from toolkit_core.testing.editor import MemoryEditor
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.testing.files_suite import CONFINED_FILES_CHECKS, FILES_CHECKS
from toolkit_core.tools import with_editor

Check = Callable[[Files], Awaitable[None]]

CHECKS = (*FILES_CHECKS, *CONFINED_FILES_CHECKS)


def name_of(check: Check) -> str:
    return getattr(check, "__name__", "")


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_host_files(check: Check, workspace: Path) -> None:
    await check(HostFiles(workspace))


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_memory_files(check: Check) -> None:
    await check(MemoryFiles())


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_files_through_an_editor(check: Check, workspace: Path) -> None:
    await check(with_editor(HostFiles(workspace), MemoryEditor(os.fspath(workspace))))
