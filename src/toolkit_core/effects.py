"""What a tool may do to the world, and which calls may run beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Risk = Literal["inspect", "modify", "execute"]


@dataclass(frozen=True)
class Effects:
    """What a tool may do. A tool without effects (`None`) is unclassified, not harmless."""

    reads: bool = False
    writes: bool = False
    destructive: bool = False
    network: bool = False
    executes: bool = False

    @property
    def risk(self) -> Risk:
        """`inspect` (reads and network), `modify` (writes) or `execute`."""
        if self.executes:
            return "execute"
        return "modify" if self.writes or self.destructive else "inspect"


@dataclass(frozen=True)
class Claims:
    """What one call holds while it runs.

    Attributes:
        paths: Absolute real paths, each claiming itself and all below it.
        read_only: The call changes nothing; it conflicts with no other call.
        exclusive: The call may touch anything; it conflicts with every other call that claims something.
    """

    paths: tuple[str, ...] = ()
    read_only: bool = False
    exclusive: bool = False

    @property
    def _holds_nothing(self) -> bool:
        return self.read_only or not (self.paths or self.exclusive)


def conflicts(a: Claims, b: Claims) -> bool:
    """Whether two calls must not run at once.

    Example:
        >>> conflicts(Claims(paths=("/w/src",)), Claims(paths=("/w/src/a.py",)))
        True
    """
    if a._holds_nothing or b._holds_nothing:  # pyright: ignore[reportPrivateUsage]  (same module)
        return False
    if a.exclusive or b.exclusive:
        return True
    return any(_contains(x, y) or _contains(y, x) for x in a.paths for y in b.paths)


def _contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
