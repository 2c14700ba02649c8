"""web_search: the first service that answers, every failure named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolkit_core import Progress, ToolContext, ToolError
from toolkit_core.ports.web_search import SearchAnswer, SearchHit
from toolkit_core.testing.web import FakeSearchProvider
from toolkit_core.tools import web_search_tool

HITS = [SearchHit(f"Title {n}", f"https://r.test/{n}", f"snippet {n}") for n in range(30)]


async def test_rows_are_numbered_title_address_and_snippet() -> None:
    result = await web_search_tool([FakeSearchProvider("one", HITS)])(query="x", limit=2)
    assert result.text == "1. Title 0\nhttps://r.test/0\nsnippet 0\n\n2. Title 1\nhttps://r.test/1\nsnippet 1"
    assert result.data == {
        "provider": "one",
        "results": [
            {"title": "Title 0", "url": "https://r.test/0", "snippet": "snippet 0"},
            {"title": "Title 1", "url": "https://r.test/1", "snippet": "snippet 1"},
        ],
        "answer": None,
    }


async def test_five_by_default_and_twenty_at_most() -> None:
    provider = FakeSearchProvider("one", SearchAnswer(tuple(HITS)))
    tool = web_search_tool(provider)
    for asked, expected in ((None, 5), (3, 3), (20, 20), (500, 20)):
        result = await tool(query="x", limit=asked)
        assert result.data is not None
        assert len(result.data["results"]) == expected
    assert [limit for _, limit in provider.asked] == [5, 3, 20, 20]


async def test_the_first_that_answers_wins_and_the_others_are_not_asked() -> None:
    first = FakeSearchProvider("first", ToolError("HTTP 429", code="rate_limited", retryable=True))
    second = FakeSearchProvider("second", HITS[:1])
    third = FakeSearchProvider("third", HITS)
    result = await web_search_tool([first, second, third])(query="x")
    assert not result.is_error
    assert result.data is not None
    assert result.data["provider"] == "second"
    assert "first: HTTP 429 (rate_limited)" in result.text
    assert third.asked == []


async def test_an_empty_answer_is_an_answer() -> None:
    second = FakeSearchProvider("second", HITS)
    result = await web_search_tool([FakeSearchProvider("first"), second])(query="x")
    assert not result.is_error
    assert result.text == "first has no results for this query."
    assert second.asked == []


async def test_an_answer_of_the_service_comes_first() -> None:
    provider = FakeSearchProvider("one", SearchAnswer((HITS[0],), answer="It is so."))
    result = await web_search_tool([provider])(query="x")
    assert result.text.startswith("It is so.\n\n1. Title 0")


async def test_when_all_fail_every_reason_is_named_and_a_rate_limit_is_no_empty_answer() -> None:
    limited = ToolError("asked too often", code="rate_limited", retryable=True)
    tool = web_search_tool([FakeSearchProvider("a", limited), FakeSearchProvider("b", limited)])
    result = await tool(query="x")
    assert result.error is not None
    assert result.error.code == "rate_limited"
    assert result.error.retryable
    mixed = web_search_tool(
        [FakeSearchProvider("a", limited), FakeSearchProvider("b", ToolError("no key", code="unavailable"))]
    )
    result = await mixed(query="x")
    assert result.error is not None
    assert result.error.code == "unavailable"
    assert "a: asked too often (rate_limited)" in result.text
    assert "b: no key (unavailable)" in result.text


async def test_a_provider_with_a_bug_is_passed_over_and_its_text_is_not_shown() -> None:
    broken = FakeSearchProvider("broken", KeyError("secret key inside"))
    result = await web_search_tool([broken, FakeSearchProvider("two", HITS)])(query="x")
    assert not result.is_error
    assert "broken: it failed with KeyError" in result.text
    assert "secret" not in result.text


async def test_a_provider_that_hangs_is_passed_over() -> None:
    class Hanging(FakeSearchProvider):
        async def search(self, query: str, limit: int) -> SearchAnswer:
            await asyncio.sleep(60)
            raise AssertionError

    result = await web_search_tool([Hanging("slow"), FakeSearchProvider("two", HITS)], provider_seconds=0.05)(query="x")
    assert not result.is_error
    assert "slow: no answer within 0.05 s (timed_out)" in result.text


async def test_a_blank_query_and_bad_limits_are_refused_before_anybody_is_asked() -> None:
    provider = FakeSearchProvider("one", HITS)
    tool = web_search_tool([provider])
    for arguments in ({"query": ""}, {"query": "  "}, {"query": "x", "limit": 0}, {}):
        result = await tool.call(arguments)
        assert result.error is not None
        assert result.error.code == "invalid_arguments"
    assert provider.asked == []


@pytest.mark.parametrize("providers", [[], (), None])
def test_without_a_provider_there_is_no_tool(providers: Any) -> None:
    with pytest.raises(TypeError, match="WebSearchProvider"):
        web_search_tool(providers)


async def test_the_subject_is_the_query_and_the_effect_is_network() -> None:
    tool = web_search_tool([FakeSearchProvider("one")])
    assert await tool.subject({"query": "who is it?"}) == "who is it?"
    assert tool.effects is not None
    assert tool.effects.network
    assert not tool.effects.writes


async def test_progress_names_who_is_asked() -> None:
    heard: list[Progress] = []
    tool = web_search_tool([FakeSearchProvider("one", HITS)])
    await tool.call({"query": "x"}, ToolContext(progress=heard.append))
    assert any("one" in progress.text for progress in heard)
