"""What the scripted brain reads out of results: a failing test, numbered lines, where functions are defined."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_FRAME = re.compile(r'^ *File "(?P<path>[^"\n]+)", line (?P<line>\d+), in (?P<function>\w+)\n(?P<code>[^\n]*)', re.M)
_FAILED = re.compile(r"^(?:FAIL|ERROR): (?P<test>\w+)", re.M)
_NUMBERED = re.compile(r"^ *(\d+)\t(.*)$")
_ROW = re.compile(r"^(?P<path>.+?):(?P<line>\d+):(?P<text>.*)$")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_ASSIGNED = re.compile(r"^([A-Za-z_]\w*) *(?::[^=]+)?=[^=]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TOOK = re.compile(r"^Ran \d+ tests? in ([\d.]+)s", re.M)
_DEFINED = re.compile(r"\bdef (\w+)")


@dataclass(frozen=True)
class Failure:
    """A failing test in a run's output.

    Attributes:
        test: Its name.
        path: The test's file, as the traceback has it.
        line: The line of the test that failed.
        code: That line.
        frames: Functions of the traceback below the test, the innermost first.
    """

    test: str
    path: str
    line: int
    code: str
    frames: tuple[str, ...]


def failures_in(output: str) -> list[Failure]:
    """The failing tests of a unittest run."""
    blocks = [(match["test"], output[match.end() :].split("\n======", 1)[0]) for match in _FAILED.finditer(output)]
    return [failure for test, block in blocks if (failure := _failure(test, block)) is not None]


def _failure(test: str, block: str) -> Failure | None:
    frames = list(_FRAME.finditer(block))
    own = [frame for frame in frames if frame["function"] == test]
    if not own:
        return None
    deeper = frames[frames.index(own[-1]) + 1 :]
    return Failure(
        test=test,
        path=own[-1]["path"],
        line=int(own[-1]["line"]),
        code=own[-1]["code"].strip(),
        frames=tuple(frame["function"] for frame in reversed(deeper)),
    )


def numbered_lines(text: str) -> dict[int, str]:
    """Line number to line, out of read_file's text."""
    found = (_NUMBERED.match(line) for line in text.splitlines())
    return {int(match[1]): match[2] for match in found if match}


def function_lines(lines: Mapping[int, str], inside: int) -> dict[int, str]:
    """The lines of the function that holds the line `inside`, its `def` first; empty where there is none."""
    start = inside
    while start in lines and not (_DEFINED.search(lines[start]) and _indent(lines[start]) <= _indent(lines[inside])):
        start -= 1
    if start not in lines:
        return {}
    body = {start: lines[start]}
    number = start + 1
    while number in lines and (not lines[number].strip() or _indent(lines[number]) > _indent(lines[start])):
        body[number] = lines[number]
        number += 1
    return body


def constants_of(body: Mapping[int, str], lines: Mapping[int, str]) -> dict[int, str]:
    """The module-level assignments of names that a function uses."""
    used = {word for line in body.values() for word in _WORD.findall(line)}
    assigned = ((number, _ASSIGNED.match(line)) for number, line in lines.items())
    return {number: lines[number] for number, match in assigned if match and match[1] in used}


def seconds_taken(output: str) -> float:
    """How long a unittest run says it took; 0 where it does not say."""
    match = _TOOK.search(output)
    return float(match[1]) if match else 0.0


def called_names(lines: Iterable[str]) -> list[str]:
    """Names that these lines call, in order, each once; keywords, definitions and assertions left out."""
    names: dict[str, None] = {}
    for line in lines:
        defined = set(_DEFINED.findall(line))
        for name in _CALLED.findall(line):
            if name not in defined and not keyword.iskeyword(name) and not name.startswith("assert"):
                names[name] = None
    return list(names)


def suspects_of(failures: Iterable[Failure]) -> list[str]:
    """Functions that the failing lines call or that raised, the one that most failures share first."""
    counted = Counter(name for f in failures for name in dict.fromkeys([*f.frames, *called_names([f.code])]))
    return [name for name, _ in counted.most_common()]


def definitions(rows: str, names: Sequence[str]) -> list[tuple[str, int]]:
    """Path and line of each definition in grep's rows, in the order of `names`; test files left out."""
    found: list[tuple[int, str, int]] = []
    for row in rows.splitlines():
        match = _ROW.match(row)
        defined = _DEFINED.search(match["text"]) if match else None
        if match and defined and defined[1] in names and not _is_test(match["path"]):
            found.append((names.index(defined[1]), match["path"], int(match["line"])))
    return [(path, line) for _, path, line in sorted(found)]


def _is_test(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith("test")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
