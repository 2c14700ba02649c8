"""The demo's job, the scripted brain that does it, and the transcript: all a framework's demo leaf needs.

An adapter's leaf (`toolkit_langchain/demo.py`, found through the entry point group "toolkit.demo") is a callable
`run(job: DemoJob, say: Callable[[str], None]) -> None`. It builds its framework's ordinary agent over the tools of
`default_tools(job.workspace)`, gives it `job.task`, and shows the work as it happens:

- `job.model is None`: the model is scripted. Each turn is `Brain(job).next_turn(steps)`, where `steps` are the tool
  calls so far with what the model read of them; a `ToolCall` becomes a tool call of the framework's model (its `note`
  the message's text), a `str` is the final answer. `Brain` keeps no state: the same steps give the same turn.
- otherwise `job.model` is `provider:name` of a real model. A missing package or key raises `DemoUnavailable` with
  what to install or set.
- `Transcript(say)` prints a turn before it runs and a step after it, the same for every framework.
- An agent's own limit of turns must be at least `MAX_TURNS`.

Whether the job was done is not the leaf's to say: the command runs the project's tests itself afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit_core.cli.demo_reading import (
    Failure,
    called_names,
    constants_of,
    definitions,
    failures_in,
    function_lines,
    numbered_lines,
    seconds_taken,
    suspects_of,
)
from toolkit_core.cli.demo_repairs import Repair, repairs
from toolkit_core.limits import (
    DEMO_LINE_CHARS,
    DEMO_MAX_DEPTH,
    DEMO_MAX_REPAIRS,
    DEMO_MAX_TURNS,
    DEMO_READ_LINES,
    DEMO_RESULT_LINES,
    DEMO_RETRY_SECONDS,
    DEMO_TEST_SECONDS,
)

MAX_TURNS = DEMO_MAX_TURNS
"""How many turns an agent must be allowed."""


class DemoUnavailable(Exception):  # noqa: N818 - it is a state of the machine, said to a person, not a program's error
    """The demo cannot run here; the message says what to install or set."""


@dataclass(frozen=True)
class DemoJob:
    """One job for one agent.

    Attributes:
        workspace: Absolute path of the project, the root of the agent's tools.
        task: What the agent is asked to do.
        model: `provider:name` of a real model, None for the scripted one.
        test_command: The shell command that runs the project's tests.
    """

    workspace: str
    task: str
    model: str | None
    test_command: str


@dataclass(frozen=True)
class ToolCall:
    """A turn that calls one tool; `note` is what the model says beside it."""

    name: str
    arguments: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Step:
    """A call that was made, and what the model read of its result."""

    name: str
    arguments: Mapping[str, Any]
    result_text: str
    is_error: bool


Turns = Generator[ToolCall, Step, str]


class Brain:
    """A scripted model's mind: each turn is computed from what the tools returned.

    The way of working is written down as one generator (`_work`); `next_turn` replays it over the steps so far. The
    brain knows nothing of the project but the command that runs its tests.
    """

    def __init__(self, job: DemoJob) -> None:
        self._job = job

    def next_turn(self, steps: Sequence[Step]) -> ToolCall | str:
        """The next tool call, or the final answer."""
        work = self._work()
        try:
            turn = next(work)
            for step in steps:
                turn = work.send(step)
        except StopIteration as end:
            return str(end.value)
        return turn

    def _work(self) -> Turns:
        tests = yield self._run_tests(DEMO_TEST_SECONDS, "First I run the tests to see what fails.")
        if _passed(tests):
            return "All tests pass; there is nothing to fix."
        failures = failures_in(tests.result_text)
        if not failures:
            return f"I could not find a failing test in the output:\n{tests.result_text}"
        failure = failures[0]
        names = [*suspects_of(failures), *(yield from self._names_in_test(failure))]
        search = _Search(test_seconds=DEMO_RETRY_SECONDS + round(5 * seconds_taken(tests.result_text)))
        for _ in range(DEMO_MAX_DEPTH):
            deeper: list[str] = []
            for path, line in (yield from _find_definitions(search.new(names))):
                lines = yield from _read(path, line, f"I read {path}.")
                body = function_lines(lines, line)
                if (yield from self._repair(path, lines, {**body, **constants_of(body, lines)}, search)):
                    return f"Fixed: {path} line {search.line}. All tests pass now."
                deeper += called_names(body.values())
            names = deeper
        return f"I tried {search.tried} repairs and none made {failure.test} pass; every file is as it was."

    def _run_tests(self, timeout_seconds: int, note: str) -> ToolCall:
        return _call("shell", command=self._job.test_command, timeout_seconds=timeout_seconds, note=note)

    def _names_in_test(self, failure: Failure) -> Generator[ToolCall, Step, list[str]]:
        """All functions that the failing test calls."""
        listing = yield _call("glob", pattern="**/test*.py", note=f"{failure.test} fails. Where are the tests?")
        known = listing.result_text.splitlines()
        path = next((p for p in known if p and _ends_with(failure.path, p)), failure.path)
        lines = yield from _read(path, failure.line, "I read the failing test.")
        return called_names(function_lines(lines, failure.line).values())

    def _repair(
        self, path: str, lines: Mapping[int, str], body: Mapping[int, str], search: _Search
    ) -> Generator[ToolCall, Step, bool]:
        """Try repairs of one function until the tests pass; the last failed one is taken back."""
        applied: Repair | None = None
        for repair in repairs(body):
            if search.tried >= DEMO_MAX_REPAIRS:
                break
            search.tried += 1
            edits = [*_undo(applied, lines), *_apply(repair, lines)]
            if search.tried == 1:
                yield from _slip(path, repair, lines)
            done = yield from _edit(path, edits, repair.why)
            if not done:
                continue
            applied = repair
            if _passed((yield self._run_tests(search.test_seconds, "Do the tests pass now?"))):
                search.line = repair.line
                return True
        if applied is not None:
            yield from _edit(path, _undo(applied, lines), "That was not it; I take it back.")
        return False


@dataclass
class _Search:
    """What one run of the brain has looked at."""

    test_seconds: int
    tried: int = 0
    line: int = 0
    seen: set[str] = field(default_factory=set[str])

    def new(self, names: Sequence[str]) -> list[str]:
        fresh = [name for name in dict.fromkeys(names) if name not in self.seen]
        self.seen.update(fresh)
        return fresh


def _read(path: str, line: int, note: str) -> Generator[ToolCall, Step, dict[int, str]]:
    """The lines of a file; where the middle of a long one was left out, the part around `line` is read as well."""
    source = yield _call("read_file", path=path, note=note)
    lines = numbered_lines(source.result_text)
    if line not in lines and not source.is_error:
        offset = max(1, line - DEMO_READ_LINES // 2)
        source = yield _call("read_file", path=path, offset=offset, limit=DEMO_READ_LINES, note=f"Line {line}, please.")
        lines |= numbered_lines(source.result_text)
    return lines


def _find_definitions(names: Sequence[str]) -> Generator[ToolCall, Step, list[tuple[str, int]]]:
    """Where functions of these names are defined, in the order of the names, tests left out."""
    if not names:
        return []
    pattern = rf"^\s*(async )?def ({'|'.join(names)})\b"
    found = yield _call("grep", pattern=pattern, glob="*.py", note=f"Where is {' or '.join(names[:3])} defined?")
    return definitions(found.result_text, names)


def _slip(path: str, repair: Repair, lines: Mapping[int, str]) -> Generator[ToolCall, Step, None]:
    """A slip that models make: the line is pasted with its number, as read_file shows it. The edit fails.

    The error's text says so, and the edit that follows is made of the line's own text.
    """
    shown = f"{repair.line:6d}\t{lines[repair.line]}"
    edit = {"old_text": shown, "new_text": repair.text}
    failed = yield _call("edit_file", path=path, edits=[edit], note=repair.why)
    if not failed.is_error:
        return
    yield _call("read_file", path=path, offset=max(1, repair.line - 2), limit=5, note=_lesson(failed))


def _lesson(failed: Step) -> str:
    first = failed.result_text.splitlines()[0] if failed.result_text else "the edit failed"
    return f'"{first}" I pasted the line number with the line. I look again.'


def _edit(path: str, edits: list[dict[str, str]], note: str) -> Generator[ToolCall, Step, bool]:
    """Make the edit; after `not_read` or `stale_file` read the file and try once more."""
    step = yield _call("edit_file", path=path, edits=edits, note=note)
    if step.is_error and ("(not_read)" in step.result_text or "(stale_file)" in step.result_text):
        yield _call("read_file", path=path, note="It must be read first.")
        step = yield _call("edit_file", path=path, edits=edits, note="Once more.")
    return not step.is_error


def _apply(repair: Repair, lines: Mapping[int, str]) -> list[dict[str, str]]:
    return [_unique_edit(repair.line, repair.text, lines)]


def _undo(repair: Repair | None, lines: Mapping[int, str]) -> list[dict[str, str]]:
    if repair is None:
        return []
    changed = {**lines, repair.line: repair.text}
    return [_unique_edit(repair.line, lines[repair.line], changed)]


def _unique_edit(number: int, text: str, lines: Mapping[int, str]) -> dict[str, str]:
    """Replace one line, with as many lines before and after it as make the place unique."""
    whole = "\n".join(lines.values())
    first = last = number
    while True:
        old = "\n".join(lines[n] for n in range(first, last + 1))
        if whole.count(old) == 1 or (first - 1 not in lines and last + 1 not in lines):
            new = "\n".join(text if n == number else lines[n] for n in range(first, last + 1))
            return {"old_text": old, "new_text": new}
        first = first - 1 if first - 1 in lines else first
        last = last + 1 if last + 1 in lines else last


def _call(name: str, *, note: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, note)


def _passed(step: Step) -> bool:
    return not step.is_error and step.result_text.startswith("exit code: 0") and "Ran 0 tests" not in step.result_text


def _ends_with(path: str, tail: str) -> bool:
    return path == tail or path.replace("\\", "/").endswith("/" + tail)


class Transcript:
    """The work as a person reads it, the same for every framework."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._number = 0

    def turn(self, turn: ToolCall | str) -> None:
        """A turn, before it runs."""
        if isinstance(turn, str):
            self._say(f"\nmodel: {turn}")
            return
        self._number += 1
        if turn.note:
            self._say(f"\nmodel: {turn.note}")
        shown = ", ".join(f"{key}={_short(value)}" for key, value in turn.arguments.items())
        self._say(f"{self._number:>3}  {turn.name}({shown})")

    def step(self, step: Step) -> None:
        """What came back, its first lines."""
        mark = "!" if step.is_error else "|"
        lines = step.result_text.splitlines() or [""]
        for line in lines[:DEMO_RESULT_LINES]:
            self._say(f"     {mark} {line[:DEMO_LINE_CHARS]}")
        if len(lines) > DEMO_RESULT_LINES:
            self._say(f"     {mark} ... {len(lines) - DEMO_RESULT_LINES} more lines")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= DEMO_LINE_CHARS else text[: DEMO_LINE_CHARS - 3] + "..."
