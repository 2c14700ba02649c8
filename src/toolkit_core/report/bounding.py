"""Values of a call cut down to what a page can hold, every cut said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, cast

from toolkit_core.limits import REPORT_DEPTH, REPORT_KEY_CHARS, REPORT_STRING_CHARS

_SAFE_INTEGER: Final = 2**53 - 1
"""Number.MAX_SAFE_INTEGER (ECMA-262): a browser would show another number beyond it."""


class Bounds:
    """What one call may still put on the page, and what was left out.

    Attributes:
        left_chars: Characters that may follow.
        cuts: A cut each: the path to it, how many characters or items are missing, and whether it is a text. A cut
            text is the list of its start and its end; a cut list or mapping is shorter.
    """

    def __init__(self, chars: int) -> None:
        self.left_chars: int = chars
        self.cuts: list[tuple[list[str | int], int, bool]] = []

    def value(self, value: object, *path: str | int) -> Any:
        """Any value as JSON that a browser reads without loss, cut where it is too much."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if len(path) > REPORT_DEPTH:
            return f"(nested deeper than {REPORT_DEPTH} levels)"
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[object, object]", value), path)
        if isinstance(value, list | tuple):
            return self._list(cast("list[object]", value), path)
        return f"({type(value).__name__})"

    def _text(self, text: str, path: tuple[str | int, ...]) -> str | list[str]:
        limit = max(0, min(REPORT_STRING_CHARS, self.left_chars))
        self.left_chars -= min(len(text), limit)
        if len(text) <= limit:
            return text
        head = limit * 2 // 5
        tail = limit - head
        self.cuts.append((list(path), len(text) - limit, True))
        return [text[:head], text[len(text) - tail :]]

    def _integer(self, value: int) -> int | str:
        self.left_chars -= 1
        if abs(value) <= _SAFE_INTEGER:
            return int(value)
        try:
            return str(value)
        except ValueError:  # longer than sys.set_int_max_str_digits allows
            return f"(an integer of {value.bit_length()} bits)"

    def _mapping(self, value: Mapping[object, object], path: tuple[str | int, ...]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if self.left_chars <= 0:
                self.cuts.append((list(path), len(value) - len(kept), False))
                break
            name = _name(key, kept)
            self.left_chars -= len(name) + 1
            kept[name] = self.value(item, *path, name)
        return kept

    def _list(self, value: list[object], path: tuple[str | int, ...]) -> list[Any]:
        kept: list[Any] = []
        for item in value:
            if self.left_chars <= 0:
                self.cuts.append((list(path), len(value) - len(kept), False))
                break
            self.left_chars -= 1
            kept.append(self.value(item, *path, len(kept)))
        return kept


def _name(key: object, taken: Mapping[str, Any]) -> str:
    text = str(key)
    if len(text) > REPORT_KEY_CHARS:
        text = f"{text[:REPORT_KEY_CHARS]}... ({len(text)} characters)"
    return text if text not in taken else f"{text} ({len(taken)})"
