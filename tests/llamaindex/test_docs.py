"""Every block of the LlamaIndex page runs and prints what the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.test_readme import blocks, matches, run

PAGE = "docs/llamaindex.md"


async def test_the_python_on_the_page_runs_and_prints_what_it_says(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    names: dict[str, Any] = {"__name__": "__main__"}
    python = [block for block in blocks(PAGE) if block.language == "python"]
    assert len(python) > 10
    for block in python:
        await run(block, names)
        printed = capsys.readouterr().out
        if block.printed is not None:
            assert matches(printed, block.printed), f"{PAGE}:{block.line} printed:\n{printed}"
