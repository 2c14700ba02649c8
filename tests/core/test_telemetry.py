"""Each call is a span; content only where asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolkit_core import Effects, ToolContext, ToolError, function_tool

_exporter = InMemorySpanExporter()


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider for these tests alone: the global one can be set only once a process."""
    provided = TracerProvider()
    provided.add_span_processor(SimpleSpanProcessor(_exporter))
    monkeypatch.setattr(trace, "get_tracer", provided.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provided)


@pytest.fixture(autouse=True)
def spans() -> InMemorySpanExporter:
    _exporter.clear()
    return _exporter


@function_tool(effects=Effects(executes=True))
async def work(path: str, ctx: ToolContext) -> Any:
    """Work."""
    if path == "bad":
        raise ToolError(f"there is no {path}", code="not_found")
    return ctx.traceparent


async def test_a_call_is_a_span_by_the_conventions_without_content(spans: InMemorySpanExporter) -> None:
    await work.call({"path": "secret"}, ToolContext(call_id="c1"))
    [span] = spans.get_finished_spans()
    assert span.name == "execute_tool work"
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "work",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "toolkit.risk": "execute",
    }


async def test_without_a_provider_no_span_is_made_and_a_callers_trace_still_goes_on(
    monkeypatch: pytest.MonkeyPatch, spans: InMemorySpanExporter
) -> None:
    sent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    assert (await work.call({"path": "a"}, ToolContext(traceparent=sent))).text == sent
    assert not spans.get_finished_spans()


async def test_an_error_sets_the_status_and_the_code(spans: InMemorySpanExporter) -> None:
    await work.call({"path": "bad"})
    [span] = spans.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "not_found"
    assert not span.status.is_ok
    assert span.status.description == "not_found"


async def test_content_comes_where_it_was_asked_for(spans: InMemorySpanExporter) -> None:
    await work.call({"path": "a\ud800"}, ToolContext(trace_content=True))
    await work.call({"path": "a"}, ToolContext(trace_content=True))
    refused, fine = spans.get_finished_spans()
    assert "ud800" in str((refused.attributes or {})["gen_ai.tool.call.arguments"])
    assert (fine.attributes or {})["gen_ai.tool.call.arguments"] == '{"path": "a"}'


async def test_an_errors_message_is_content(spans: InMemorySpanExporter) -> None:
    await work.call({"path": "bad"}, ToolContext(trace_content=True))
    [span] = spans.get_finished_spans()
    assert span.status.description == "there is no bad"


async def test_child_processes_get_the_span_as_their_parent_and_a_callers_trace_goes_on(
    spans: InMemorySpanExporter,
) -> None:
    sent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    handed = (await work.call({"path": "a"}, ToolContext(traceparent=sent))).text
    [span] = spans.get_finished_spans()
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b" * 16
    assert handed == f"00-{'a' * 32}-{span.context.span_id:016x}-01"


def test_without_the_package_nothing_of_it_is_imported() -> None:
    code = """
import asyncio, sys
sys.modules["opentelemetry"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name.startswith("opentelemetry") else real(name, *a)
from toolkit_core import function_tool
@function_tool
async def f() -> str:
    "F."
    return "x"
assert asyncio.run(f()).text == "x"
assert not [m for m in sys.modules if m.startswith("opentelemetry.")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
