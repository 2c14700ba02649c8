"""One call as the page holds it: a row of the list, and the content that is decoded when it is opened."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from toolkit_core.limits import DISPLAY_IMAGE_BASE64_CHARS, REPORT_SUMMARY_CHARS
from toolkit_core.output_window import window
from toolkit_core.report.bounding import Bounds

_TELLING: Final = ("path", "command", "pattern", "url", "query", "question", "questions", "names", "entry_id", "name")
_TEXTS: Final = ("entry_id", "parent_id", "session_id", "call_id", "tool", "outcome", "code", "risk", "traceparent")
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_NO_MAPPING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Row:
    """What the list, the filters and the timeline need of one call."""

    entry_id: str
    parent_id: str
    session_id: str
    call_id: str
    tool: str
    outcome: str
    code: str
    risk: str
    traceparent: str
    started_at: float
    duration_seconds: float
    size_bytes: int
    is_dropped: bool
    summary: str
    exit_code: int


def row_of(call: Mapping[str, Any]) -> Row:
    """The row of a call; what is missing or of a wrong type is empty."""
    return Row(
        **{name: _short(call.get(name)) for name in _TEXTS},
        started_at=_number(call.get("started_at")),
        duration_seconds=max(0.0, _number(call.get("duration_seconds"))),
        size_bytes=int(max(0.0, _number(call.get("size_bytes")))),
        is_dropped=bool(call.get("dropped")),
        summary=_summary(_mapping(call.get("arguments"))),
        exit_code=int(_number(_mapping(_mapping(call.get("result")).get("data")).get("exit_code"))),
    )


def content_of(call: Mapping[str, Any], *, chars: int, image_chars: int) -> tuple[dict[str, Any], int]:
    """Arguments, result and what the model read, at most so much of it; and how many characters that took.

    Args:
        call: As `render` takes it.
        chars: For everything but images.
        image_chars: For the base64 text of images.
    """
    result = _mapping(call.get("result"))
    blocks = [_mapping(block) for block in _list(result.get("content"))]
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    kept = call.get("shown")
    shown = kept if isinstance(kept, str) else _windowed(text, str(call.get("entry_id", "")))
    bounds = Bounds(chars)
    content: dict[str, Any] = {
        "shown": bounds.value(shown, "shown"),
        "shown_chars": len(text) if shown is None else len(shown),
        "shown_kept": isinstance(kept, str),
        "arguments": bounds.value(call.get("arguments"), "arguments"),
        "error": bounds.value(result.get("error"), "error"),
        "data": bounds.value(result.get("data"), "data"),
        "text": bounds.value(text, "text"),
        "text_chars": len(text),
        "has_result": call.get("result") is not None,
        "images": [_image(block, image_chars) for block in blocks if block.get("type") == "image"],
    }
    content["cuts"] = bounds.cuts
    return content, chars - bounds.left_chars + sum(len(image.get("base64", "")) for image in content["images"])


def _windowed(text: str, entry_id: str) -> str | None:
    """What the default window lets through, None where that is all."""
    shown = window(text, recall_id=entry_id)
    return None if shown == text else shown


def _image(block: Mapping[str, Any], chars: int) -> dict[str, Any]:
    mime_type, encoded = str(block.get("mime_type", ""))[:100], block.get("base64")
    image = {"mime_type": mime_type, "size_bytes": int(_number(block.get("size_bytes")))}
    if not isinstance(encoded, str) or mime_type not in _IMAGE_TYPES or _BASE64.fullmatch(encoded) is None:
        return image
    fits = len(encoded) <= min(chars, DISPLAY_IMAGE_BASE64_CHARS)
    return {**image, "base64": encoded} if fits else {**image, "left_out": True}


def _summary(arguments: Mapping[str, Any]) -> str:
    """The argument that tells most, on one line."""
    told = next((arguments[name] for name in _TELLING if arguments.get(name)), None)
    if told is None:
        told = next((value for value in arguments.values() if isinstance(value, str) and value), "")
    while isinstance(told, list | tuple) and told:
        told = cast("Sequence[object]", told)[0]
    if isinstance(told, Mapping):
        return _summary(cast("Mapping[str, Any]", told))
    text = told[: REPORT_SUMMARY_CHARS * 4] if isinstance(told, str) else ""
    return " ".join(text.split())[:REPORT_SUMMARY_CHARS]


def _short(value: object) -> str:
    return str(value)[:400] if isinstance(value, str | int | float) else ""


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else _NO_MAPPING


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
