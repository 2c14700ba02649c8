"""The parts of a result, found by the shape of its payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast

from toolkit_core.display._parts import Code, Diff, Failure, Heading, Note, Part, Table
from toolkit_core.display._reading import Data, blocks, listed, mapping, mappings
from toolkit_core.limits import DISPLAY_IMAGES, DISPLAY_PART_CHARS

_Finder = Callable[[str, Data], "list[Part] | None"]


def result_parts(result: Data) -> list[Part]:
    """What is shown of a result."""
    text, images = blocks(result)
    error = mapping(result.get("error"))
    parts = _succeeded(text, result.get("data")) if error is None else _failed(text, error)
    left_out = len(images) - DISPLAY_IMAGES
    return [*parts, *images[:DISPLAY_IMAGES], *([Note(f"... {left_out} more images")] if left_out > 0 else [])]


def _failed(text: str, error: Data) -> list[Part]:
    code, message, hint = (str(error.get(key) or "") for key in ("code", "message", "hint"))
    said = f"Error ({code}): {message}" + (f"\n{hint}" if hint else "")
    if not text.startswith(said):
        return [Failure(code, text)]
    detail = text[len(said) :].strip("\n")
    return [Failure(code, message, hint), *([Code(detail)] if detail else [])]


def _succeeded(text: str, data: object) -> list[Part]:
    if (payload := mapping(data)) is not None:
        for find in _FINDERS:
            if found := find(text, payload):
                return found
    return _structured(text, data) or [Code(text)]


def _diff(text: str, data: Data) -> list[Part] | None:
    diff = data.get("diff")
    if not isinstance(diff, str) or not diff:
        return None
    return [Note(text.split("\n", 1)[0]), Diff(diff)] if "path" in data else [Diff(diff)]


def _matches(text: str, data: Data) -> list[Part] | None:
    found = mappings(data.get("rows"))
    if not found:
        return None
    rows: list[tuple[object, ...]] = []
    before: object = None
    for row in found:
        path = row.get("path")
        rows.append(("" if path == before else path, row.get("line"), row.get("text")))
        before = path
    return [Table(("path", "line", "text"), rows, is_code=True), *_rest(data)]


def _counts(text: str, data: Data) -> list[Part] | None:
    found = mappings(data.get("counts"))
    if not found:
        return None
    rows = [(row.get("path"), row.get("count")) for row in found]
    return [Table(("path", "count"), rows, is_code=True), *_rest(data)]


def _paths(text: str, data: Data) -> list[Part] | None:
    found = listed(data.get("paths")) or listed(data.get("files"))
    if not found or not all(isinstance(path, str) for path in found):
        return None
    return [Table(("path",), [(path,) for path in found], is_code=True), *_rest(data)]


def _search_results(text: str, data: Data) -> list[Part] | None:
    found = mappings(data.get("results"))
    if not found:
        return None
    rows = [(row.get("title"), row.get("url"), row.get("snippet")) for row in found]
    answer = data.get("answer")
    return [*([Note(answer)] if isinstance(answer, str) else []), Table(("title", "url", "snippet"), rows)]


def _answers(text: str, data: Data) -> list[Part] | None:
    found = mappings(data.get("answers"))
    if not found:
        return None
    return [Table(("question", "answer"), [(row.get("question"), _answer(row)) for row in found])]


def _answer(row: Data) -> str:
    if row.get("cancelled"):
        return "(dismissed)"
    return ", ".join([*map(str, listed(row.get("values"))), *([str(row["text"])] if row.get("text") else [])])


def _loaded(text: str, data: Data) -> list[Part] | None:
    found = mappings(data.get("loaded"))
    if not found:
        return None
    return [Table(("loaded tool", "description"), [(row.get("name"), row.get("description")) for row in found])]


def _commitments(text: str, data: Data) -> list[Part] | None:
    states = ("open", "blocked", "waiting", "closed")
    if not all(isinstance(data.get(state), list) for state in states):
        return None
    rows = [
        (state, row.get("id"), row.get("objective"), "; ".join(map(str, listed(row.get("missing_evidence")))))
        for state in states
        for row in mappings(data[state])
    ]
    return [Table(("state", "id", "objective", "evidence missing"), rows)] if rows else None


def _command(text: str, data: Data) -> list[Part] | None:
    stdout, stderr = data.get("stdout"), data.get("stderr")
    if not isinstance(stdout, str) or not isinstance(stderr, str) or "exit_code" not in data:
        return None
    parts: list[Part] = [Heading(_ending(data))]
    parts += [Code(stdout)] if stdout else []
    parts += [Code(stderr, label="stderr")] if stderr else []
    for key, said in (("stdout_cut", "bytes of stdout left out"), ("stderr_cut", "bytes of stderr left out")):
        parts += [Note(f"{data[key]} {said}")] if data.get(key) else []
    killed = data.get("survivors_killed")
    return [*parts, *([Note(f"background survivors killed: {killed}")] if killed else [])]


def _process(text: str, data: Data) -> list[Part] | None:
    output = data.get("output")
    if not isinstance(output, str) or "process_id" not in data:
        return None
    ending = "running" if data.get("running") else _ending(data)
    return [Heading(str(data["process_id"]), ending), *([Code(output)] if output else [])]


def _ending(data: Data) -> str:
    if data.get("signal") is not None:
        return f"ended by signal {data['signal']}"
    return f"exit code {data.get('exit_code')}"


def _page(text: str, data: Data) -> list[Part] | None:
    address, status = data.get("final_url"), data.get("status")
    if not isinstance(address, str) or not isinstance(status, int):
        return None
    title = data.get("title")
    body = text.partition("\n\n")[2] or text
    aside = f"{status} {data.get('content_type') or ''}".strip()
    return [Heading(str(title or address), aside), *([Note(address)] if title else []), Code(body, wraps=True)]


def _file(text: str, data: Data) -> list[Part] | None:
    path, size = data.get("path"), data.get("size_bytes")
    if not isinstance(path, str) or not isinstance(size, int) or "kind" not in data:
        return None
    head, _, body = text.partition("\n")
    if not head.startswith(f"{path}: "):
        head, body = f"{path}: {size:,} bytes", "" if data["kind"] == "image" else text
    return [Heading(path, head.removeprefix(f"{path}: ")), *([Code(body)] if body else [])]


def _structured(text: str, data: object) -> list[Part] | None:
    """A custom tool's data: rows of the same fields as a table, else JSON that a person can read."""
    if text[:1] not in ("{", "[") or len(text) > DISPLAY_PART_CHARS or not isinstance(data, Mapping | list):
        return None
    table = mappings(cast("object", data))
    if table and (heads := list(table[0])) and all(_flat(row, heads) for row in table):
        return [Table(heads, [[row[head] for head in heads] for row in table])]
    try:
        return [Code(json.dumps(data, ensure_ascii=False, indent=2))]
    except (TypeError, ValueError, RecursionError):  # no JSON after all: the text is what there is
        return None


def _flat(row: Data, heads: list[str]) -> bool:
    return list(row) == heads and not any(isinstance(value, Mapping | list) for value in row.values())


def _rest(data: Data) -> list[Part]:
    """What a listing leaves out, said: a cut table must not look whole."""
    said = ["there is more than is listed"] if data.get("truncated") is True else []
    for key, what in (("ignored_count", "ignored"), ("skipped", "skipped")):
        count = data.get(key)
        said += [f"{count} {what}"] if isinstance(count, int) and count > 0 else []
    return [Note("; ".join(said))] if said else []


_FINDERS: tuple[_Finder, ...] = (
    _diff,
    _matches,
    _counts,
    _paths,
    _search_results,
    _answers,
    _loaded,
    _commitments,
    _command,
    _process,
    _page,
    _file,
)
