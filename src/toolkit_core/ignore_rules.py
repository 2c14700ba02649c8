"""What a .gitignore says, after gitignore(5): the last rule that fits decides, a nearer file beats a farther one.

Rules are kept by shape, so that a name costs a few look-ups whatever the file's length: whole names and paths in
dicts, `*.suffix` by its suffix, and only what is left as regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from toolkit_core.glob_pattern import GlobPattern

ALWAYS_SKIPPED: Final = frozenset({".git", "node_modules"})
"""Names that a search leaves out wherever they stand, unless it names them."""

_NOBODY: Final = "\x01toolkit-probe\x01"
"""A name that no rule spells out: ignored only where everything is."""
_SUFFIX: Final = re.compile(r"\*(\.[^*?\[\\/.]+)\Z")
_UNCOMMON: Final = re.compile(r"\A\xef\xbb\xbf|^(?!#).*(?:[{}]|\[:|[\t\v\f]\r?$)", re.MULTILINE)
_POSIX_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "xdigit": "0-9a-fA-F",
    "punct": r"!-/:-@\[-`{-~",
}


@dataclass(frozen=True)
class Rule:
    """One line: its pattern without the marks, and what the marks say."""

    pattern: str
    ignored: bool
    folders_only: bool
    anchored: bool


_Verdict = tuple[int, bool]
Suspects = Callable[[str], bool]
"""Whether a name needs a closer look."""


@dataclass
class _Table:
    """Rules for one kind of entry; the higher number is the later line."""

    names: dict[str, _Verdict] = field(default_factory=dict[str, _Verdict])
    suffixes: dict[str, _Verdict] = field(default_factory=dict[str, _Verdict])
    paths: dict[str, _Verdict] = field(default_factory=dict[str, _Verdict])
    name_tests: list[tuple[_Verdict, re.Pattern[str]]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  (the annotation says it)
    path_tests: list[tuple[_Verdict, re.Pattern[str]]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  (the annotation says it)

    def add(self, rule: Rule, number: int) -> None:
        verdict = (number, rule.ignored)
        suffix = _SUFFIX.match(rule.pattern)
        magic = any(c in rule.pattern for c in "*?[\\")
        if rule.anchored and not magic:
            self.paths[rule.pattern] = verdict
        elif rule.anchored:
            self.path_tests.insert(0, (verdict, _compiled(rule.pattern)))
        elif not magic:
            self.names[rule.pattern] = verdict
        elif suffix:
            self.suffixes[suffix[1]] = verdict
        else:
            self.name_tests.insert(0, (verdict, _compiled(rule.pattern)))

    def suspects(self, folder: str) -> Suspects:
        """What tells quickly, for the entries of a folder (relative, with its slash), that no rule can fit."""
        here = {path.rpartition("/")[2] for path in self.paths if path.rpartition("/")[0] == folder.rstrip("/")}
        names = self.names.keys() | here
        if self.path_tests:
            return _always
        return _quick(frozenset(names), frozenset(self.suffixes), [test for _, test in self.name_tests])

    def verdict(self, path: str, name: str) -> bool | None:
        best = self.names.get(name)
        if self.suffixes and (dot := name.rfind(".")) >= 0:
            best = _later(best, self.suffixes.get(name[dot:]))
        if self.paths:
            best = _later(best, self.paths.get(path))
        for tests, text in ((self.name_tests, name), (self.path_tests, path)):
            for verdict, test in tests:
                if best is not None and best[0] > verdict[0]:
                    break
                if test.fullmatch(text):
                    best = verdict
                    break
        return None if best is None else best[1]


class IgnoreRules:
    """The rules of one .gitignore, for paths relative to its folder."""

    def __init__(self, rules: Iterable[Rule], *, uncommon: bool = False) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        self.uncommon: bool = uncommon
        """Whether other readers of such files take a line otherwise: braces, a class, a tab at its end, a mark."""
        self._files, self._folders = _Table(), _Table()
        for number, rule in enumerate(self.rules):
            self._folders.add(rule, number)
            if not rule.folders_only:
                self._files.add(rule, number)
        self._path_folders = {path.rpartition("/")[0] + "/" * ("/" in path) for path in self._folders.paths}
        self._suspects: Suspects | None = None

    def suspects(self, folder: str) -> Suspects:
        """A quick test for the names in a folder below: False where no rule can fit, whatever the kind."""
        inside = self._folders.paths and folder in self._path_folders
        if not inside and self._suspects is not None:
            return self._suspects
        made = self._folders.suspects(folder)  # the rules for folders hold those for files
        if not inside:
            self._suspects = made
        return made

    @classmethod
    def parse(cls, content: bytes) -> IgnoreRules:
        """Read a file's content; a line that cannot be a pattern matches nothing, as in git."""
        text = content.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
        rules = (rule for line in text.split("\n") if (rule := parse_rule(line)) is not None)
        return cls(rules, uncommon=bool(_UNCOMMON.search(content.decode("latin-1"))))

    def verdict(self, path: str, name: str, *, folder: bool) -> bool | None:
        """True: ignored; False: kept by a `!` rule; None: no rule fits. `name` is the last part of `path`."""
        if not path.isascii():
            path, name = _bytewise(path), _bytewise(name)
        return (self._folders if folder else self._files).verdict(path, name)


@dataclass(frozen=True)
class IgnoreScope:
    """The rules that hold in one folder: those of its own .gitignore, then those of the folders above.

    `depth_chars` is the length of the prefix, with its slash, that leads from the walk's root to the folder.
    """

    rules: IgnoreRules
    depth_chars: int
    outer: IgnoreScope | None = None

    def suspects(self, folder: str) -> Suspects:
        """A quick test for the names in `folder` (from the walk's root, with its slash): False means not ignored."""
        own = self.rules.suspects(folder[self.depth_chars :])
        if self.outer is None:
            return own
        outer = self.outer.suspects(folder)
        return lambda name: own(name) or outer(name)

    def ignores(self, path: str, name: str, *, folder: bool) -> bool:
        """Whether the entry at `path` (from the walk's root) is ignored; its folders are taken as not ignored."""
        scope: IgnoreScope | None = self
        while scope is not None:
            verdict = scope.rules.verdict(path[scope.depth_chars :], name, folder=folder)
            if verdict is not None:
                return verdict
            scope = scope.outer
        return False

    def ignores_all_inside(self, folder: str) -> bool:
        """Whether everything inside a folder (from the walk's root, no slash at its end) is ignored, as by `dist/*`."""
        probe = f"{folder}/{_NOBODY}" if folder else _NOBODY
        return all(self.ignores(probe, _NOBODY, folder=kind) for kind in (True, False))


def skipped_names(inner: Iterable[str], pattern: GlobPattern | None) -> frozenset[str]:
    """The names that are always left out, but for those that the start's path or the pattern spells out."""
    named = frozenset(inner) | (frozenset[str]() if pattern is None else pattern.literal_names)
    return ALWAYS_SKIPPED - named


def spells_out_ignored(scope: IgnoreScope, prefix: str, pattern: GlobPattern) -> bool:
    """Whether a file filter, used below `prefix` ("" or ending with `/`), spells out a name that is ignored."""
    folders, _ = pattern.split_folder()
    path = prefix
    for name in folders:
        if scope.ignores(path + name, name, folder=True):
            return True
        path += f"{name}/"
    if folders and scope.ignores_all_inside(path.rstrip("/")):
        return True
    return any(_is_named_away(scope, prefix + name, name) for name in pattern.literal_names)


def parse_rule(line: str) -> Rule | None:
    """One line of a .gitignore; None for a comment, an empty line, or a pattern that cannot match."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    line = _without_trailing_spaces(line)
    ignored = not line.startswith("!")
    pattern = line if ignored else line[1:]
    if not ignored and not pattern:
        return None
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if anchored and pattern.startswith("**/") and "/" not in pattern[3:] and pattern[3:]:
        pattern, anchored = pattern[3:], False
    if not pattern or _unfinished(pattern):
        return None
    if not any(c in pattern for c in "*?["):
        unescaped = re.sub(r"\\(.)", r"\1", pattern)
        pattern = pattern if "\\" in unescaped else unescaped
    return Rule(pattern, ignored, folders_only, anchored)


def _always(name: str) -> bool:
    return True


def _quick(names: frozenset[str], suffixes: frozenset[str], tests: list[re.Pattern[str]]) -> Suspects:
    def suspect_plain(name: str) -> bool:
        return name in names or name[name.rfind(".") :] in suffixes or not name.isascii()

    if not tests:
        return suspect_plain
    fits = re.compile("|".join(f"(?:{test.pattern})" for test in tests), re.DOTALL).fullmatch

    def suspect(name: str) -> bool:
        if name in names or name[name.rfind(".") :] in suffixes or not name.isascii():
            return True
        return fits(name) is not None

    return suspect


def _bytewise(name: str) -> str:
    """One character a byte, since git compares bytes: `?` is one byte of a longer character."""
    return name.encode("utf-8", "surrogateescape").decode("latin-1")


def _is_named_away(scope: IgnoreScope, path: str, name: str) -> bool:
    by_name = any(scope.ignores(path, name, folder=folder) for folder in (True, False))
    return by_name or scope.ignores_all_inside(path)


def _later(a: _Verdict | None, b: _Verdict | None) -> _Verdict | None:
    if a is None or b is None:
        return a or b
    return max(a, b)


def _without_trailing_spaces(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " " and not line[: end - 1].endswith("\\"):
        end -= 1
    return line[:end]


def _unfinished(pattern: str) -> bool:
    """Whether a class is never closed or a backslash escapes nothing; git lets such a pattern match nothing."""
    i = 0
    while i < len(pattern):
        if pattern[i] == "\\":
            if i + 1 == len(pattern):
                return True
            i += 2
        elif pattern[i] == "[":
            i = _class_end(pattern, i)
            if not i:
                return True
        else:
            i += 1
    return False


def _class_end(pattern: str, start: int) -> int:
    i = start + 1
    if pattern[i : i + 1] in ("!", "^"):
        i += 1
    if pattern[i : i + 1] == "]":
        i += 1
    while i < len(pattern):
        if pattern[i] == "]":
            return i + 1
        if pattern.startswith("[:", i) and (end := pattern.find(":]", i)) > 0:
            i = end + 2
        else:
            i += 2 if pattern[i] == "\\" else 1
    return 0


def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern's test. Stars are atomic between fixed pieces of one part, as in a glob."""
    parts = pattern.split("/")
    source = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            source += ".+" if last else "(?:[^/]+/)*"
        else:
            source += _part(part) + ("" if last else "/")
    return re.compile(source, re.DOTALL)


def _part(part: str) -> str:
    pieces = [""]
    i = 0
    while i < len(part):
        if part[i] == "*":
            pieces.append("")
            i += 1
        else:
            token, i = _token(part, i)
            pieces[-1] += token
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + "[^/]*" + last


def _token(part: str, i: int) -> tuple[str, int]:
    c = part[i]
    if c == "?":
        return "[^/]", i + 1
    if c == "\\" and i + 1 < len(part):
        return re.escape(part[i + 1]), i + 2
    if c == "[" and (end := _class_end(part, i)):
        return _class(part[i + 1 : end - 1]), end
    return re.escape(c), i + 1


def _class(inner: str) -> str:
    """The inside of a class; one that holds nothing, such as a backward range, matches nothing."""
    negated = inner[:1] in ("!", "^")
    members = re.findall(r"\[:\w+:\]|\\.|.", inner[negated:], re.DOTALL)
    source, i = "", 0
    while i < len(members):
        member = members[i]
        if member.startswith("[:") and len(member) > 2:
            source += _POSIX_CLASSES.get(member[2:-2], "")
            i += 1
        elif i + 2 < len(members) and members[i + 1] == "-":
            low, high = member[-1], members[i + 2][-1]
            source += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
            i += 3
        else:
            source += re.escape(member[-1])
            i += 1
    if negated:
        return f"[^/{source}]"
    return f"(?!/)[{source}]" if source else r"(?!)"
