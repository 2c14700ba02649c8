r"""Glob patterns over `/`-separated paths: one syntax for glob, for grep's filter and for every plane.

Syntax: `*` and `?` within one name (a leading dot is nothing special), `**` as a whole part for any number of
folders, `[abc]`, `[a-z]`, `[!abc]`, `{one,two}` (nested too; without a comma braces are plain characters), `\`
takes the next character as it is, a trailing `/` means folders only. A leading `!` is a plain character.

A pattern is matched part by part, so that a walk enters only folders that can hold a match: `start` gives the
state at the top, `Step.enter` the state below a folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import methodcaller
from typing import Final

from toolkit_core.limits import GLOB_ALTERNATIVES, GLOB_PATTERN_MAX_CHARS

ANY_DEPTH: Final = "**"
_MAGIC: Final = frozenset("*?[\\")
_PLAIN: Final = re.compile(r"[^*?\[\\]+")

Test = Callable[[str], bool]


def _ends_with(suffix: str | tuple[str, ...]) -> Callable[[str], bool]:
    """A test without a frame of Python; in Pyodide a plain one: collecting a methodcaller ends its interpreter."""
    if sys.platform == "emscripten":
        return lambda name: name.endswith(suffix)
    return methodcaller("endswith", suffix)


class BadGlobError(ValueError):
    """A pattern that cannot be meant; the text says why and where."""


@dataclass(frozen=True)
class Part:
    """What one name of a path must look like. `literal` is that name where only one fits, unescaped."""

    text: str
    literal: str | None
    test: Test = field(compare=False, repr=False)

    @property
    def any_depth(self) -> bool:
        """Whether this part stands for any number of folders."""
        return self.text == ANY_DEPTH


Alternative = tuple[Part, ...]
_State = tuple[int, int]


class Step:
    """Where a match stands inside one folder."""

    __slots__ = ("_finals", "_named", "_pattern", "_states", "_stay", "accepts")

    def __init__(self, pattern: GlobPattern, states: frozenset[_State]) -> None:
        self._pattern = pattern
        finals: list[Part] = []
        named: list[tuple[Part, _State]] = []
        stay: set[_State] = set()
        for number, index in sorted(_with_zero_folders(pattern.alternatives, states)):
            parts = pattern.alternatives[number]
            part = parts[index]
            if part.any_depth:
                stay.add((number, index))
            elif index == len(parts) - 1:
                finals.append(part)
            else:
                named.append((part, (number, index + 1)))
        self._states, self._finals, self._named, self._stay = states, finals, named, frozenset(stay)
        self.accepts: Test = _any_of(finals)
        """Whether an entry of this name in this folder matches the whole pattern."""

    def enter(self, name: str) -> Step | None:
        """The state inside the folder `name`; None where nothing below it can match."""
        states = self._stay
        if self._named:
            reached = {state for part, state in self._named if part.test(name)}
            if reached:
                states = states | reached
        if not states:
            return None
        return self if states == self._states else self._pattern.step(states)

    def names(self, name: str) -> bool:
        """Whether the pattern spells out this very name at this place."""
        return any(part.literal == name for part in self._finals) or any(p.literal == name for p, _ in self._named)


@dataclass(frozen=True)
class GlobPattern:
    """A parsed pattern.

    Attributes:
        text: As it was given.
        alternatives: One sequence of parts for each choice of the braces.
        folders_only: The pattern ends with `/`.
    """

    text: str
    alternatives: tuple[Alternative, ...]
    folders_only: bool = False
    _steps: dict[frozenset[_State], Step] = field(default_factory=dict[frozenset[_State], Step], compare=False)

    @property
    def start(self) -> Step:
        """The state in the folder where the search starts."""
        return self.step(frozenset((number, 0) for number in range(len(self.alternatives))))

    def step(self, states: frozenset[tuple[int, int]]) -> Step:
        """The state for these places in the alternatives; made once."""
        found = self._steps.get(states)
        if found is None:
            found = self._steps[states] = Step(self, states)
        return found

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Whether a whole relative path matches."""
        if self.folders_only and not folder:
            return False
        *folders, name = path.split("/")
        step: Step | None = self.start
        for entered in folders:
            step = step.enter(entered)
            if step is None:
                return False
        return step.accepts(name)

    @property
    def literal_names(self) -> frozenset[str]:
        """Every name that the pattern spells out."""
        return frozenset(p.literal for parts in self.alternatives for p in parts if p.literal is not None)

    @property
    def has_any_depth(self) -> bool:
        """Whether each alternative begins with `**/`, so that a deeper search would find no more."""
        return all(parts[0].any_depth for parts in self.alternatives)

    def deeper(self) -> GlobPattern:
        """The same pattern at any depth: `**/` in front of it."""
        deep = tuple(_collapsed((_ANY, *parts)) for parts in self.alternatives)
        return GlobPattern(f"**/{self.text}", deep, self.folders_only)

    def split_folder(self) -> tuple[tuple[str, ...], GlobPattern]:
        """The folders that every alternative spells out at its front, and the pattern that is left below them."""
        common: list[str] = []
        shortest = min(len(parts) for parts in self.alternatives) - 1
        for index in range(shortest):
            names = {parts[index].literal for parts in self.alternatives}
            name = names.pop()
            if names or name is None:
                break
            common.append(name)
        if not common:
            return (), self
        rest = tuple(parts[len(common) :] for parts in self.alternatives)
        return tuple(common), GlobPattern(self.text, rest, self.folders_only)


def parse_glob(text: str, *, any_depth: bool = False) -> GlobPattern:
    """Parse a pattern.

    Args:
        text: The pattern. Empty parts and `.` are dropped; a leading `/` is dropped too, the caller judges it.
        any_depth: An alternative without `/` matches at any depth, as a file filter does.

    Raises:
        BadGlobError: Empty, too long, too many alternatives, or a range that runs backwards.
    """
    if not text.strip("/"):
        raise BadGlobError("the pattern is empty")
    if all(part in ("", ".") for part in text.split("/")):
        raise BadGlobError("it names the folder itself, not what is in it; * stands for every name in it")
    if len(text) > GLOB_PATTERN_MAX_CHARS:
        raise BadGlobError(f"the pattern has {len(text):,} characters; at most {GLOB_PATTERN_MAX_CHARS:,} are taken")
    choices = _expand_braces(text)
    alternatives = tuple(dict.fromkeys(_alternative(choice, any_depth) for choice in choices))
    return GlobPattern(text, alternatives, text.endswith("/"))


def parse_filter(text: str) -> GlobPattern:
    """A file filter: a pattern without `/` holds at any depth, one that ends with `/` stands for all below it.

    Raises:
        BadGlobError: As `parse_glob`.
    """
    return parse_glob(f"{text}**" if text.endswith("/") else text, any_depth=True)


def escaped(name: str) -> str:
    """A name as a pattern that matches nothing else."""
    return re.sub(r"[*?\[\\{}]", lambda m: f"[{m[0]}]" if m[0] != "\\" else "\\\\", name)


def _alternative(choice: str, any_depth: bool) -> Alternative:
    parts = tuple(_part(text) for text in choice.split("/") if text not in ("", "."))
    if not parts:
        raise BadGlobError("a choice of the braces is empty")
    if any_depth and "/" not in choice.removesuffix("/**"):
        parts = (_ANY, *parts)
    return _collapsed(parts)


def _collapsed(parts: Alternative) -> Alternative:
    """Runs of `**` are one; a `**` at the end means everything below."""
    kept = [p for i, p in enumerate(parts) if not (p.any_depth and i and parts[i - 1].any_depth)]
    return (*kept, _EVERYTHING) if kept[-1].any_depth else tuple(kept)


def _with_zero_folders(alternatives: tuple[Alternative, ...], states: frozenset[_State]) -> set[_State]:
    """The states, and those behind each `**`, which may stand for no folder at all."""
    reached = set(states)
    for number, index in states:
        if alternatives[number][index].any_depth:
            reached.add((number, index + 1))
    return reached


def _any_of(parts: list[Part]) -> Test:
    if not parts:
        return _never
    if len(parts) == 1:
        return parts[0].test
    suffixes = tuple(part.text[1:] for part in parts if _is_suffix(part.text))
    if len(suffixes) == len(parts):
        return _ends_with(suffixes)
    tests = [part.test for part in parts]
    return lambda name: any(test(name) for test in tests)


def _never(name: str) -> bool:
    return False


def _always(name: str) -> bool:
    return True


def _is_suffix(text: str) -> bool:
    return text[0] == "*" and len(text) > 1 and not _MAGIC.intersection(text[1:])


def _part(text: str) -> Part:
    if text == ANY_DEPTH:
        return _ANY
    if text == "..":
        raise BadGlobError("no part of a pattern leads upwards ('..'); give the folder to start from as the path")
    if not _MAGIC.intersection(text):
        return Part(text, text, text.__eq__)
    if not text.strip("*"):
        return _EVERYTHING
    if _is_suffix(text):
        suffix = text[1:]
        return Part(text, None, _ends_with(suffix))
    literal = re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
    if not re.search(r"(?<!\\)(?:\\\\)*[*?\[]", text) and not text.endswith("\\"):
        return Part(text, literal, literal.__eq__)
    fullmatch = re.compile(_regex(text), re.DOTALL).fullmatch
    return Part(text, None, lambda name: fullmatch(name) is not None)


_ANY: Final = Part(ANY_DEPTH, None, _always)
_EVERYTHING: Final = Part("*", None, _always)


def _regex(text: str) -> str:
    """One name's pattern as a regular expression that never backtracks into an earlier star.

    Between two stars stands a piece of fixed length; its first fit is as good as any, so each is atomic.
    """
    pieces: list[str] = [""]
    i = 0
    while i < len(text):
        c = text[i]
        if c == "*":
            pieces.append("")
            i += 1
            continue
        source, i = _token(text, i)
        pieces[-1] += source
    first, *others = pieces
    if not others:
        return first
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}.*{others[-1]}"


def _token(text: str, i: int) -> tuple[str, int]:
    c = text[i]
    if c == "?":
        return ".", i + 1
    if c == "\\" and i + 1 < len(text):
        return re.escape(text[i + 1]), i + 2
    if c == "[":
        end = class_end(text, i)
        if end:
            return _class(text, i, end), end
    plain = _PLAIN.match(text, i)
    return (re.escape(plain[0]), plain.end()) if plain else (re.escape(c), i + 1)


def class_end(text: str, start: int) -> int:
    """The index behind the `]` of the class that begins at `start`; 0 where it is never closed in this part."""
    i = start + 1
    if text[i : i + 1] in ("!", "^"):
        i += 1
    if text[i : i + 1] == "]":
        i += 1
    while i < len(text) and text[i] != "/":
        if text[i] == "]":
            return i + 1
        i += 2 if text[i] == "\\" else 1
    return 0


def _class(text: str, start: int, end: int) -> str:
    inner = text[start + 1 : end - 1]
    negated = inner[:1] in ("!", "^")
    members = [m[1] or m[0] for m in re.finditer(r"\\(.)|.", inner[negated:], re.DOTALL)]
    plain = [m[0] for m in re.finditer(r"\\.|.", inner[negated:], re.DOTALL)]
    source, i = "", 0
    while i < len(members):
        if i + 2 < len(members) and plain[i + 1] == "-":
            low, high = members[i], members[i + 2]
            if low > high:
                raise BadGlobError(f"the range {low}-{high} at index {start} runs backwards")
            source += f"{re.escape(low)}-{re.escape(high)}"
            i += 3
        else:
            source += re.escape(members[i])
            i += 1
    return f"[{'^' if negated else ''}{source}]"


def _expand_braces(text: str) -> list[str]:
    """Every choice of the braces, as patterns without choices; braces that stay are plain characters."""
    done: list[str] = []
    waiting = [("", text)]
    while waiting:
        head, rest = waiting.pop()
        at, choices, tail = _first_choice(rest)
        if choices is None:
            done.append(head + rest)
        else:
            waiting += [(head + rest[:at], choice + tail) for choice in reversed(choices)]
        if len(done) + len(waiting) > GLOB_ALTERNATIVES:
            raise BadGlobError(f"the braces stand for more than {GLOB_ALTERNATIVES} patterns")
    return done


def _first_choice(text: str) -> tuple[int, list[str] | None, str]:
    """Where the first `{a,b}` begins, its choices, and what follows it."""
    i = 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 2
        elif c == "[" and (end := class_end(text, i)):
            i = end
        elif c == "{" and (commas := _commas(text, i)):
            bounds = [i, *commas]
            choices = [text[a + 1 : b] for a, b in pairwise(bounds)]
            return i, choices, text[commas[-1] + 1 :]
        else:
            i += 1
    return 0, None, ""


def _commas(text: str, start: int) -> list[int]:
    """The places of the commas of the brace at `start` and of its end; [] where it offers no choice."""
    depth, places = 0, list[int]()
    i = start
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 2
            continue
        if c == "[" and (end := class_end(text, i)):
            i = end
            continue
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return [*places, i] if places else []
        elif c == "," and depth == 1:
            places.append(i)
        i += 1
    return []
