"""An envelope as LlamaIndex's model and program get it: blocks, and `raw_output` beside them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import ContentBlock, ImageBlock, TextBlock
from llama_index.core.tools import ToolOutput

from toolkit_core.errors import ErrorInfo, ToolError
from toolkit_core.limits import ARTIFACT_LEDGER_CHARS, ARTIFACT_STRING_CHARS
from toolkit_core.output_window import bounded
from toolkit_core.result import ToolResult
from toolkit_core.schema import encodable, plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit_core.output_window import Window

_log = logging.getLogger("toolkit_llamaindex")

NO_OUTPUT = "(no output)"
"""Some providers refuse a message whose text is empty or blank, and the run would end there."""


def tool_output(
    result: ToolResult[Any],
    *,
    name: str,
    arguments: Mapping[str, Any],
    window: Window | None,
    recall: bool = False,
) -> ToolOutput:
    """The result in LlamaIndex's shape.

    One TextBlock (some providers join several without a separator), then the images. `raw_output` is plain JSON:
    ok, data, error, and with a ledger entry_id, which also stands in the place of each bulky string.

    Args:
        result: The envelope.
        name: The tool's name.
        arguments: What the model sent.
        window: Bounds the text; None hands over all of it.
        recall: Whether the agent can look up a ledger entry, so that the cut can name it.
    """
    result, plain = _presented(result, name)
    return ToolOutput(
        tool_name=name,
        blocks=_blocks(result, window, recall=recall),
        raw_input={"args": [], "kwargs": _shown(arguments)},
        raw_output=plain,
        is_error=result.is_error,
        exception=_exception(result),
    )


def _presented(result: ToolResult[Any], name: str) -> tuple[ToolResult[Any], dict[str, Any]]:
    """The result and its `raw_output`; a hard error where it has no JSON form and so could not be handed on."""
    try:
        return result, _raw_output(result)
    except Exception as e:  # noqa: BLE001 - a payload may run anybody's code; the agent's run must go on
        _log.exception("the result of %s has no JSON form", name)
        hint = "This is a fault of the tool, not of the arguments."
        info = ErrorInfo("invalid_result", f"the tool's result has no JSON form ({type(e).__name__})", hint, cause=e)
        failed: ToolResult[Any] = ToolResult.failure(info)
        return failed, _raw_output(failed)


def windowed_text(result: ToolResult[Any], window: Window | None, *, recall: bool = False) -> str:
    """What the model reads: the text within the window, whole without one."""
    text = encodable(result.text)
    return text if window is None else window.apply(text, recall_id=result.entry_id if recall else None)


def _raw_output(result: ToolResult[Any]) -> dict[str, Any]:
    """The envelope as plain JSON for the program; it is serialised with the workflow's context."""
    shown: dict[str, Any] = {
        "ok": not result.is_error,
        "data": plain_json(result.data),
        "error": None if result.error is None else plain_json(result.error.to_dict()),
    }
    if result.entry_id is not None:
        shown["entry_id"] = result.entry_id
    return cast("dict[str, Any]", _each_string(shown, result.entry_id))


def _blocks(result: ToolResult[Any], window: Window | None, *, recall: bool) -> list[ContentBlock]:
    text = windowed_text(result, window, recall=recall)
    blocks: list[ContentBlock] = [
        ImageBlock(image=image.data, image_mimetype=image.mime_type) for image in result.images
    ]
    if text.strip():
        return [TextBlock(text=text), *blocks]
    return blocks or [TextBlock(text=NO_OUTPUT)]


def _exception(result: ToolResult[Any]) -> Exception | None:
    try:
        result.raise_for_error()
    except ToolError as e:
        return e
    return None


def _shown(arguments: Mapping[str, Any]) -> Any:
    try:
        return plain_json(arguments)
    except TypeError:
        return {"unrecordable": "the arguments have no JSON form or are nested too deeply"}


def _each_string(value: Any, entry_id: str | None) -> Any:
    if isinstance(value, str):
        return _bulk(value, entry_id)
    if isinstance(value, dict):
        return {key: _each_string(item, entry_id) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_each_string(item, entry_id) for item in cast("list[Any]", value)]
    return value


def _bulk(text: str, entry_id: str | None) -> str:
    if entry_id is not None:
        return entry_id if len(text) > ARTIFACT_LEDGER_CHARS else text
    return bounded(text) if len(text) > ARTIFACT_STRING_CHARS else text
