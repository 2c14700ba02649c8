"""The documentation: it builds strictly, needs nothing from elsewhere, names everything public, and its code runs."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from tests.test_readme import SAMPLE, blocks, matches, run

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN_HERE = ["docs/from-their-names.md"]
"""Pages whose code no other test runs."""

NEEDS_MACHINES = ["docs/sandbox-clients.md", "docs/scaling.md"]
"""Pages whose code wants an SSH host or a cloud: it is compiled, and what it imports must be there."""

MODULES = (
    "toolkit_core",
    "toolkit_core.notebook",
    "toolkit_langchain",
    "toolkit_langchain.testing",
    "toolkit_llamaindex",
    "toolkit_llamaindex.testing",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(find_spec("mkdocs") and find_spec("material") and find_spec("mkdocstrings"), "mkdocs (the extra dev)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning_and_has_every_page(site: Path) -> None:
    built = {page.stem for page in site.glob("*.html")}

    assert {page.stem for page in PAGES} <= built
    assert {"readme", "architecture", "threat_model", "changelog"} <= built
    assert (site / "llms.txt").read_text(encoding="utf-8").startswith("# toolkit-core\n\n> ")


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*\bhref=[\"']?(?:https?:)?//"
    )

    assert loaded.search('<link rel="stylesheet" href="https://fonts.test/a.css">'), "CONTROL"
    for page in site.glob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page.name


def test_links_from_page_to_page_lead_somewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        if page.stem == "404":
            continue
        links = re.findall(r"<a\b[^>]*\bhref=\"([^\"#:]+)[#\"]", page.read_text(encoding="utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_names_everything_public(module: str) -> None:
    named = set(re.findall(r"^::: (\S+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE))
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}

    assert public - named == set()
    assert {name for name in named if name.rpartition(".")[0] == module} - public == set()


def test_the_reference_shows_what_a_tool_may_answer(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")

    assert "Error codes" in page
    assert "&gt;&gt;&gt; tools[" not in page, "an example is no code"
    assert "<blockquote>" not in page


def test_every_page_with_code_is_run_by_a_test() -> None:
    with_code = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    assert [page.name for page in with_code if f"docs/{page.name}" not in tests] == []


@pytest.mark.parametrize("page", NEEDS_MACHINES)
def test_code_that_needs_other_machines_compiles_and_imports_what_there_is(page: str) -> None:
    python = [block for block in blocks(page) if block.language == "python"]
    assert python
    for block in python:
        tree = ast.parse(block.code)
        compile(tree, f"{page}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
            module = importlib.import_module(str(node.module))
            assert [name.name for name in node.names if not hasattr(module, name.name)] == [], f"{page}:{block.line}"


def test_code_is_in_a_language_that_is_run_or_checked() -> None:
    for page in (page for page in PAGES if "```" in page.read_text(encoding="utf-8")):
        name = str(page.relative_to(ROOT))
        for block in blocks(name):
            assert block.language in {"python", "sh"}, f"{name}:{block.line}"
            lines = block.code.splitlines() if block.language == "sh" else []
            assert {shlex.split(line)[0] for line in lines} <= {"pip", "toolkit", "make"}, f"{name}:{block.line}"


@pytest.mark.parametrize("page", RUN_HERE)
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
