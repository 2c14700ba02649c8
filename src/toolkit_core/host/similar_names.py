"""What a path that was not found may have meant: names in the folder that differ by little."""

from __future__ import annotations

import difflib
import os
import unicodedata
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.limits import SUGGESTION_ENTRIES
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.host.resolve import Roots


def missing(roots: Roots, path: str, message: str) -> ToolError:
    """The `not_found` of a path as it was asked for: through which link it led, and what may have been meant."""
    real = roots.resolve(path).real
    hint = suggestion(roots, real)
    if real != os.path.normpath(os.path.join(roots.root, path)):
        message = f"{one_line_name(path)} leads through a link to {one_line_name(roots.subject(real))}, "
        message += "where there is nothing."
        hint = f"The link is dangling; name another path, or make what it leads to. {hint}"
    return ToolError(message, code="not_found", hint=hint)


def suggestion(roots: Roots, real: str) -> str:
    """A hint for a missing path: where it stops to exist, and which names there are close."""
    place_of_name = real
    while not os.path.isdir(folder := os.path.dirname(place_of_name)) and folder != "/":
        place_of_name = folder
    name = os.path.basename(place_of_name)
    if not roots.contains(folder):
        return "Check each name in the path."
    shown = one_line_name(roots.subject(folder))
    place = "the root" if shown == "." else f"the folder {shown}"
    close = _close_names(folder, name)
    if close:
        tail = real[len(place_of_name) :]
        spelled = [one_line_name(roots.subject(os.path.join(folder, other))) + tail for other in close]
        reason = _same_look(name, close[0])
        return f"Did you mean {' or '.join(map(repr, spelled))}?{reason}"
    if place_of_name != real:
        return f"There is nothing named {one_line_name(name)!r} in {place} either; list {place} to see its names."
    return f"No name in {place} is like it; list {place} to see its names."


def _close_names(folder: str, name: str) -> list[str]:
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        names.extend(entry.name for entry in islice(entries, SUGGESTION_ENTRIES))
    same = sorted(other for other in names if _folded(other) == _folded(name))
    if same:
        return same[:1]
    return list(difflib.get_close_matches(name, names, n=2, cutoff=0.65))


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _same_look(name: str, other: str) -> str:
    if unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other):
        return " The names differ only in their Unicode form (composed and decomposed characters)."
    if name.casefold() == other.casefold():
        return " The names differ only in letter case."
    if _folded(name) == _folded(other):
        return " The names differ only in blanks or in characters that look alike (U+202F or U+00A0 for a space, say)."
    return ""
