"""What can be shown: a few kinds of parts, whatever they are rendered to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Heading:
    """A name, and what is said beside it."""

    text: str
    aside: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence about what is shown."""

    text: str


@dataclass(frozen=True)
class Prose:
    """Text in lines that may be wrapped."""

    text: str


@dataclass(frozen=True)
class Code:
    """Text in lines that are kept; `label` names it, `wraps` breaks long lines."""

    text: str
    label: str = ""
    wraps: bool = False


@dataclass(frozen=True)
class Diff:
    """A unified diff."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows under heads; `is_code` keeps the spaces of its cells."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    is_code: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a call failed."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Picture:
    """An image block as `ToolResult.to_dict` has it."""

    block: Mapping[str, Any]

    @property
    def line(self) -> str:
        """It, named only."""
        return f"[image {self.block.get('mime_type')}, {self.block.get('size_bytes')} bytes]"


@dataclass(frozen=True)
class Progressing:
    """How far a call has come."""

    kind: str
    text: str = ""
    done: float | None = None
    total: float | None = None
    ended: bool = False

    @property
    def share(self) -> float | None:
        """What is done, from 0 to 1; None where that is not known."""
        if self.done is None or not self.total or self.total < 0 or self.done != self.done:
            return None
        return min(1.0, max(0.0, self.done / self.total))

    @property
    def count(self) -> str:
        """The numbers as text."""
        if self.done is None:
            return ""
        return f"{self.done:,.10g}" + ("" if self.total is None else f" of {self.total:,.10g}")


Part = Heading | Note | Prose | Code | Diff | Table | Failure | Picture | Progressing
