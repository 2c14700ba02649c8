"""Each call as a span, where OpenTelemetry is installed (extra `otel`).

Names follow the semantic conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#execute-tool-span
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolkit_core.schema import plain_json

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolkit_core.context import ToolContext
    from toolkit_core.effects import Effects
    from toolkit_core.result import ToolResult


@cache
def tracing() -> Any:
    """The module `opentelemetry.trace`, None where it is not installed."""
    return (
        import_module("opentelemetry.trace")
        if find_spec("opentelemetry") and find_spec("opentelemetry.trace")
        else None
    )


def is_traced() -> bool:
    """Whether somebody takes spans: OpenTelemetry is installed and a provider set."""
    trace = tracing()
    return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@dataclass
class CallSpan:
    """The span of one call; hands its context on to child processes."""

    span: Any
    context: ToolContext
    arguments: object

    def ended(self, result: ToolResult[Any]) -> None:
        """Say how the call ended."""
        if result.error is not None:
            self.span.set_attribute("error.type", result.error.code)
            told = result.error.message if self.context.trace_content else result.error.code
            self.span.set_status(tracing().StatusCode.ERROR, told)
        if self.context.trace_content:
            self.span.set_attribute("gen_ai.tool.call.result", result.text)


@contextmanager
def call_span(tool: str, effects: Effects | None, arguments: object, context: ToolContext) -> Generator[CallSpan]:
    """A span named `execute_tool NAME`; without content, unless `context.trace_content`."""
    trace = tracing()
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "toolkit.risk": effects.risk if effects is not None else "unclassified",
    }
    if context.call_id:
        attributes["gen_ai.tool.call.id"] = context.call_id
    if context.trace_content:
        attributes["gen_ai.tool.call.arguments"] = _json(arguments)
    tracer = trace.get_tracer("toolkit_core")
    parent = _remote_parent(context.traceparent)
    with tracer.start_as_current_span(
        f"execute_tool {tool}", context=parent, kind=trace.SpanKind.INTERNAL, attributes=attributes
    ) as span:
        yield CallSpan(span, replace(context, traceparent=_traceparent(span) or context.traceparent), arguments)


def _remote_parent(traceparent: str | None) -> Any:
    """The context that a caller's traceparent names, where no span is current in this task."""
    if traceparent is None or tracing().get_current_span().get_span_context().is_valid:
        return None
    propagation = import_module("opentelemetry.trace.propagation.tracecontext")
    return propagation.TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def _traceparent(span: Any) -> str | None:
    """The span as a W3C traceparent, https://www.w3.org/TR/trace-context/#traceparent-header."""
    around = span.get_span_context()
    if not around.is_valid:
        return None
    return f"00-{around.trace_id:032x}-{around.span_id:016x}-{around.trace_flags:02x}"


def _json(arguments: object) -> str:
    try:
        return json.dumps(plain_json(arguments), ensure_ascii=False)
    except TypeError:
        return f"<{type(arguments).__name__}>"
