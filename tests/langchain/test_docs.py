"""Every block of the LangChain pages runs, in a copy of the demo's sample project, and prints what the page says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.test_readme import SAMPLE, blocks, matches, run


@pytest.mark.parametrize("page", ["docs/langchain.md", "docs/approvals.md"])
async def test_the_python_on_a_page_runs_and_prints_what_it_says(
    page: str, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLE, workspace, dirs_exist_ok=True)
    monkeypatch.chdir(workspace)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            await run(block, names)
            printed = capsys.readouterr().out
            if block.printed is not None:
                assert matches(printed, block.printed), f"{page}:{block.line} printed:\n{printed}"
