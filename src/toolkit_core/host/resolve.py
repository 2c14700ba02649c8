"""Where a path leads, and whether that is inside the roots: what every tool of this machine uses.

A path is followed hop by hop as the kernel does it (path_resolution(7)): `..` after a link leaves the link's
target, a dangling link counts as the place that it names, and what is missing hangs on its nearest existing
ancestor. The verdict on a path is only advice until the path is open; `open_judged` judges the descriptor.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from toolkit_core.errors import ToolError
from toolkit_core.limits import LINK_HOPS, NAME_MAX_BYTES, PATH_MAX_BYTES
from toolkit_core.ports.files import Resolved
from toolkit_core.text import one_line_name, raw_name, shown_name

Outside = Literal["refuse", "policy"]
AnyPath = str | os.PathLike[str]


def resolve_within(root: AnyPath, path: str) -> Resolved:
    """Where `path` leads, seen from `root`, and whether that is inside `root`; nothing is opened or refused.

    Returns:
        `Resolved(absolute, real, inside, subject)`.

    Raises:
        ValueError: `root` is empty or no folder.
        ToolError: `invalid_arguments`: the path is empty, has a NUL or a lone surrogate, or is too long.
    """
    return Roots(root, outside="policy").locate(path)


class Roots:
    """One or more folders that paths must lie in; relative paths start at the first.

    Args:
        cwd: The first root. A trailing slash, `..`, a link and `/` are fine; it is followed once, here.
        extra_roots: Further folders, relative ones taken from `cwd`.
        outside: "refuse" raises `access_denied` for what is outside; "policy" lets it through with
            `inside=False`, for programs that have a gate.
        hidden: Absolute real paths that a sandbox hides: they, and what lies below them, are always refused.

    Raises:
        ValueError: A root is empty, missing or no folder.
    """

    def __init__(
        self,
        cwd: AnyPath,
        extra_roots: Sequence[AnyPath] = (),
        outside: Outside = "refuse",
        *,
        hidden: Sequence[str] = (),
    ) -> None:
        if outside not in ("refuse", "policy"):
            raise ValueError(f"outside must be 'refuse' or 'policy', not {outside!r}")
        first = _real_root(cwd, base="")
        self._roots = (first, *(_real_root(extra, base=first) for extra in extra_roots))
        self._outside: Outside = outside
        self._hidden = tuple(hidden)

    @property
    def root(self) -> str:
        """The absolute real path of the first root."""
        return self._roots[0]

    @property
    def roots(self) -> tuple[str, ...]:
        """The absolute real paths of all roots."""
        return self._roots

    @property
    def outside(self) -> Outside:
        """What happens to paths outside."""
        return self._outside

    def resolve(self, path: str) -> Resolved:
        """Judge a path without opening it.

        Raises:
            ToolError: `access_denied` (outside, and `outside="refuse"`; the text never names where a link
                leads), `invalid_arguments` (empty, NUL, lone surrogate, too long).
        """
        found = self.locate(path)
        if _is_home(path) and not os.path.lexists(os.path.join(self.root, "~")):
            raise self._home_refused(path)
        if not found.inside and self._outside == "refuse":
            raise self.refusal(path)
        self.check_visible(found.real, path)
        return found

    def locate(self, path: str) -> Resolved:
        """Where a path leads; outside is no error here."""
        check_path(path)
        absolute = os.path.join(self.root, path)
        check_path(absolute)
        above = (root for root in self._roots if _lies_in(root, absolute) and _link_target(root) is None)
        known = next(above, "/")
        return self.resolved(followed(absolute, known=known), absolute=absolute)

    def resolved(self, real: str, *, absolute: str | None = None) -> Resolved:
        """The verdict on a path that is real already, such as a descriptor's."""
        return Resolved(absolute or real, real, self.contains(real), self.subject(real))

    def contains(self, real: str) -> bool:
        """Whether a real path is a root or lies below one; compared by whole components."""
        return any(_lies_in(root, real) for root in self._roots)

    def hidden(self) -> frozenset[str]:
        """The real paths that are hidden as they are now: one outside the roots may have become a link since."""
        led = (followed(path) for path in self._hidden if not self.contains(path))
        return frozenset((*self._hidden, *led))

    def check_visible(self, real: str, path: str) -> None:
        """Refuse a real path that is hidden or lies in what is.

        Raises:
            ToolError: `access_denied`.
        """
        if self._hidden and any(_lies_in(hidden, real) for hidden in self.hidden()):
            message = f"{one_line_name(path)} is hidden by the sandbox."
            raise ToolError(message, code="access_denied", hint="Use another path; no setting of a call opens it.")

    def subject(self, real: str) -> str:
        """What rules and results show: relative to the first root when inside it, else absolute."""
        if not _lies_in(self.root, real):
            return shown_name(real)
        return shown_name(real[len(self.root.rstrip("/")) + 1 :]) or "."

    def refusal(self, path: str) -> ToolError:
        """The `access_denied` for a path, with the relative spelling to try."""
        tail = [part for part in path.split("/") if part not in ("", ".")]
        spelled_inside = not path.startswith("/") and ".." not in tail
        shown, roots = one_line_name(path), ", ".join(one_line_name(root) for root in self._roots)
        if spelled_inside or self._is_below_root(path):
            message = f"{shown} leads outside the root {roots} through a link."
            return ToolError(message, code="access_denied", hint="Use a path whose real place is inside the root.")
        inner = "/".join(part for part in tail if part != "..") or "."
        message = f"{shown} is outside the root {roots}."
        hint = f"Paths are relative to the root: try {one_line_name(inner)!r}."
        return ToolError(message, code="access_denied", hint=hint)

    def _is_below_root(self, path: str) -> bool:
        return any(_lies_in(root, os.path.normpath(os.path.join(self.root, path))) for root in self._roots)

    def _home_refused(self, path: str) -> ToolError:
        inner = path[2:].lstrip("/") or "."
        return ToolError(
            f"{one_line_name(path)} is not inside the root {one_line_name(self.root)}: ~ is not expanded.",
            code="access_denied",
            hint=f"Paths are relative to the root: try {one_line_name(inner)!r}, or './~' for a folder of that name.",
        )


def check_path(path: str) -> None:
    """Refuse what cannot be a path.

    Raises:
        ToolError: `invalid_arguments`: empty, NUL, a lone surrogate that stands for no byte, a name over
            255 bytes, a path over 4,096 bytes.
    """
    if not path:
        raise ToolError("The path is empty.", code="invalid_arguments", hint="Use '.' for the root folder.")
    if "\0" in path:
        place = path.index("\0")
        hint = "No file name holds it; give the path without it."
        raise ToolError(f"The path has a NUL character at index {place}.", code="invalid_arguments", hint=hint)
    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        message = f"The path has a lone surrogate U+{ord(path[e.start]):04X} at index {e.start}; no file name holds it."
        raise ToolError(message, code="invalid_arguments", hint="Send the whole character.") from None
    if len(data) > PATH_MAX_BYTES:
        message = f"The path is {len(data):,} bytes long; the system takes at most {PATH_MAX_BYTES:,}."
        raise ToolError(message, code="invalid_arguments", hint="Give a shorter path, with fewer or shorter folders.")
    longest = max(map(len, data.split(b"/")))
    if longest > NAME_MAX_BYTES:
        message = f"A name in the path is {longest:,} bytes long; the system takes at most {NAME_MAX_BYTES}."
        raise ToolError(message, code="invalid_arguments", hint="Give a shorter name.")


def _real_root(given: AnyPath, *, base: str) -> str:
    text = os.fspath(given) if given is not None else ""  # pyright: ignore[reportUnnecessaryComparison]  (callers err)
    if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  (callers err)
        raise ValueError("a root folder must be given; it is empty")
    try:
        real = os.path.realpath(os.path.join(base, text), strict=True)
    except (OSError, ValueError) as e:
        raise ValueError(f"the root {text!r} cannot be used: {e}") from e
    if not os.path.isdir(real):
        raise ValueError(f"the root {text!r} is not a folder")
    return real


def _lies_in(root: str, real: str) -> bool:
    return real == root or real.startswith(root.rstrip("/") + "/")


def _is_home(path: str) -> bool:
    return path == "~" or path.startswith("~/")


def followed(absolute: str, *, known: str = "/") -> str:
    """The real path, links followed one by one; at the hop limit the link itself, which then fails to open.

    Args:
        absolute: The path.
        known: A folder that it begins with and that is real already; had one above it become a link since, what is
            opened lies elsewhere, and is refused then.
    """
    waiting = _parts(absolute[len(known) :])
    real, hops = known, 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            real = os.path.dirname(real)
            continue
        place = _existing_spelling(real, name)
        target = _link_target(place) if hops < LINK_HOPS else None
        if target is None:
            real = place
            continue
        hops += 1
        waiting.extend(_parts(target))
        if target.startswith("/"):
            real = "/"
    return real


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _existing_spelling(folder: str, name: str) -> str:
    """The literal name, or the bytes that it escapes where only a file of those exists."""
    literal = os.path.join(folder, name)
    raw = raw_name(name)
    if raw is None or os.path.lexists(literal):
        return literal
    escaped = os.path.join(folder, raw)
    return escaped if raw not in (".", "..") and os.path.lexists(escaped) else literal


def _link_target(place: str) -> str | None:
    try:
        return os.readlink(place)
    except OSError:  # no link, missing or not permitted: the open says which
        return None
