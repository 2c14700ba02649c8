"""What is looked at may be any JSON: readers that take only the shape they expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolkit_core.display._parts import Picture

Data = Mapping[str, Any]


def listed(value: object) -> Sequence[Any]:
    """A list as it is, anything else as an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def mapping(value: object) -> Data | None:
    """A mapping, None for anything else."""
    return cast("Data", value) if isinstance(value, Mapping) else None


def mappings(value: object) -> Sequence[Data]:
    """A list of mappings; an empty one where something else is among them."""
    found = listed(value)
    return found if all(isinstance(row, Mapping) for row in found) else ()


def blocks(result: Data) -> tuple[str, list[Picture]]:
    """A result's text, and its images."""
    found = [block for block in map(mapping, listed(result.get("content"))) if block is not None]
    text = "\n".join(str(block.get("text", "")) for block in found if block.get("type") == "text")
    return text, [Picture(block) for block in found if block.get("type") == "image"]
