"""What is fuzzed: a strategy that makes inputs and a check that knows what must hold for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis.strategies import SearchStrategy

from tests.fuzz import arguments, edits, manifests, reports, rows, search_answers, urls, windows


@dataclass(frozen=True)
class Group:
    """One subject."""

    inputs: SearchStrategy[Any]
    check: Callable[[Any], None]


GROUPS = {
    "arguments": Group(arguments.INPUTS, arguments.check),
    "edits": Group(edits.INPUTS, edits.check),
    "manifests": Group(manifests.INPUTS, manifests.check),
    "reports": Group(reports.INPUTS, reports.check),
    "rows": Group(rows.INPUTS, rows.check),
    "search": Group(search_answers.INPUTS, search_answers.check),
    "urls": Group(urls.INPUTS, urls.check),
    "windows": Group(windows.INPUTS, windows.check),
}
