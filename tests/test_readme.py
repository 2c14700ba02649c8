"""Every block of the pages is run, in a copy of the demo's sample project; what a page says it prints is compared.

A block of Python that a `text` block follows prints that text; a line of `...` or an end in `...` stands for anything.
Scripted models stand in for the providers' ones.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import shutil
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import cli

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = Path(cli.__file__).with_name("sample")
PAGES = ["README.md", "docs/your-own-tools.md", "docs/testing-offline.md"]
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    printed: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, a `text` block joined to the one before it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for here, after in zip(found, [*found[1:], None], strict=True):
        if here["language"] == "text":
            continue
        follows = after is not None and after["language"] == "text" and not text[here.end() : after.start()].strip()
        printed = after["code"] if follows and after is not None else None
        yield Block(page, text.count("\n", 0, here.start()) + 1, here["language"], here["code"], printed)


def matches(printed: str, said: str) -> bool:
    """Whether the output is what the page says; `...` stands for anything."""
    pattern = re.escape(said.rstrip()).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, printed.rstrip(), re.DOTALL) is not None


async def run(block: Block, names: dict[str, Any]) -> None:
    """Run a block as a notebook does: `await` at the top is fine."""
    code = compile(block.code, f"{block.page}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result


@pytest.fixture
def sample(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SAMPLE, workspace, dirs_exist_ok=True)
    monkeypatch.chdir(workspace)
    return workspace


@pytest.fixture
def _no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted models where the page names a provider's: each reads a file, then answers."""
    from toolkit_langchain import testing as langchain
    from toolkit_llamaindex import testing as llamaindex

    def chat_model(name: str, **_: Any) -> Any:
        assert re.fullmatch(r"[a-z_]+:[\w.-]+", name)
        return langchain.ScriptedModel([langchain.tool_call("read_file", path="README.md"), "The bug is in pricing."])

    def llm(*, model: str) -> Any:
        assert model
        return llamaindex.ScriptedModel([llamaindex.tool_call("read_file", path="README.md"), "The bug is in pricing."])

    monkeypatch.setattr("langchain.agents.factory.init_chat_model", chat_model)
    provider = types.ModuleType("llama_index.llms.anthropic")
    monkeypatch.setattr(provider, "Anthropic", llm, raising=False)
    monkeypatch.setitem(sys.modules, "llama_index.llms.anthropic", provider)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("sample", "_no_provider")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")  # LlamaIndex reads all attributes
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211")
async def test_the_python_on_a_page_runs_and_prints_what_it_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    python = [block for block in blocks(page) if block.language == "python"]
    assert python

    for block in python:
        await run(block, names)
        printed = capsys.readouterr().out
        if block.printed is not None:
            assert matches(printed, block.printed), f"{page}:{block.line} printed:\n{printed}"


def test_control_a_wrong_claim_of_what_is_printed_is_found() -> None:
    assert matches("a\nb\n", "a\nb\n")
    assert matches("Error (x): many words\n", "Error (x): ...\n")
    assert not matches("a\n", "b\n")
    assert not matches("a\nb\n", "a\n")


@pytest.mark.usefixtures("sample")
def test_the_commands_on_the_page_work(capsys: pytest.CaptureFixture[str]) -> None:
    extras = set(metadata("toolkit-core").get_all("Provides-Extra") or [])
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for block in blocks("README.md") if block.language == "sh" for line in block.code.splitlines()]
    assert lines

    for line in lines:
        program, *words = shlex.split(line)
        if program == "toolkit":
            assert cli.main(words) == 0, line
            assert capsys.readouterr().out
        elif program == "make":
            assert set(words) <= targets, line
        else:
            assert (program, words[0]) == ("pip", "install"), line
            assert set(re.findall(r"\[([\w,-]+)\]", line)) <= extras, line


def test_the_page_lists_every_extra() -> None:
    extras = set(metadata("toolkit-core").get_all("Provides-Extra") or [])

    assert extras <= set(re.findall(r"`([\w-]+)`", (ROOT / "README.md").read_text(encoding="utf-8")))


def test_the_first_code_is_within_thirty_lines_and_needs_no_reading_before() -> None:
    first = next(block for block in blocks("README.md") if block.language == "python")

    assert first.line + first.code.count("\n") <= 30


@pytest.mark.parametrize(
    "page", sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    here = ROOT / page
    prose = re.sub(r"```.*?^```|`[^`\n]*`", "", here.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)

    assert [link for link in links if "://" not in link and not (here.parent / link).exists()] == []
