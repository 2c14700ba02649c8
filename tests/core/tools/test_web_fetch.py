"""web_fetch over a fake network: what it shows, without any connection."""

from __future__ import annotations

import re

import pytest

from toolkit_core import ToolError, ToolSet
from toolkit_core.ports.web import Refresh, WebPage
from toolkit_core.testing.web import FakeBrowser, FakeSearchProvider, FakeWeb
from toolkit_core.tools import browse_tool, web_fetch_tool, web_search_tool

URL = "https://docs.test/"


async def test_a_page_is_its_headline_and_its_text() -> None:
    result = await web_fetch_tool(FakeWeb({URL: "# Welcome"}))(url=URL)
    assert result.text == "https://docs.test/ (200, text/html)\n\n# Welcome"


async def test_an_error_of_the_port_keeps_its_code_and_hint() -> None:
    fault = ToolError("refused", code="refused_url", hint="Only public hosts.")
    result = await web_fetch_tool(FakeWeb({URL: fault}))(url=URL)
    assert result.error is not None
    assert result.error.code == "refused_url"
    assert "Only public hosts." in result.text


async def test_notes_stand_behind_the_text_each_in_brackets() -> None:
    page = WebPage(
        URL,
        200,
        "text/html",
        "html",
        text="x" * 50,
        size_bytes=50,
        cut=True,
        refresh=Refresh(0, "https://docs.test/new"),
    )
    result = await web_fetch_tool(FakeWeb({URL: page}), page_chars=20)(url=URL, start_index=20)
    head, text, *notes = result.text.split("\n\n")
    assert head == "https://docs.test/ (200, text/html)"
    assert text == "x" * 20
    assert notes == [
        "[characters 20 to 40 of 50; more follows: start_index=40]\n"
        "[cut at 50 bytes: the server had more, which cannot be read]\n"
        "[after 0 s the page asks to go on to https://docs.test/new, not followed]"
    ]
    assert result.data is not None
    assert result.data["next_index"] == 40


async def test_a_part_ends_at_a_line_s_end_where_one_is_near() -> None:
    text = "a" * 95 + "\n" + "b" * 100
    result = await web_fetch_tool(FakeWeb({URL: text}), page_chars=100)(url=URL)
    assert result.data is not None
    assert result.data["next_index"] == 96


async def test_null_and_numbers_in_strings_are_taken() -> None:
    tool = web_fetch_tool(FakeWeb({URL: "abcdef"}))
    assert (await tool.call({"url": URL, "start_index": "3", "raw": None})).text.startswith(
        "https://docs.test/ (200, text/html)\n\ndef"
    )


def test_descriptions_name_parameters_and_siblings_only() -> None:
    web, browser, search = FakeWeb({}), FakeBrowser({}), FakeSearchProvider("one")
    alone = [web_fetch_tool(web), browse_tool(browser), web_search_tool([search])]
    together = ToolSet(alone)
    for tools, known in ((alone, set[str]()), (list(together), {"web_fetch", "browse", "web_search"})):
        for tool in tools:
            words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", tool.description))
            assert words <= set(tool.parameters["properties"]) | known, tool.name
            assert 1 <= len(tool.description) <= 1024
    assert "browse" in together["web_fetch"].description
    assert "browse" not in alone[0].description
    assert "web_fetch" in together["browse"].description
    assert "web_fetch" in together["web_search"].description


def test_a_renamed_sibling_is_named_as_it_is_called() -> None:
    tools = ToolSet([web_fetch_tool(FakeWeb({})), browse_tool(FakeBrowser({}), name="open_page")])
    assert "open_page does that" in tools["web_fetch"].description


def test_a_description_of_one_s_own_is_used_verbatim() -> None:
    assert web_fetch_tool(FakeWeb({}), description="Mine.").description == "Mine."


@pytest.mark.parametrize("factory", [web_fetch_tool, browse_tool])
def test_without_a_port_there_is_no_tool(factory: object) -> None:
    with pytest.raises(TypeError, match="needs"):
        factory(None)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]


def test_parameters_are_plain() -> None:
    assert web_fetch_tool(FakeWeb({})).parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "Absolute http or https URL."},
            "start_index": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "Character of the text to start from; 0 is the first.",
            },
            "raw": {"type": "boolean", "default": False, "description": "HTML as its source instead of Markdown."},
        },
    } | {k: v for k, v in web_fetch_tool(FakeWeb({})).parameters.items() if k == "description"}
