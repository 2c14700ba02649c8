"""The worker process seen from its owner: started, fed with names by a walk, read like ripgrep, killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host._native.child import Child
from toolkit_core.host.regex_worker import REFUSED, SPANS_LINES
from toolkit_core.host.ripgrep import PatternRefusedError, environment, judge_exit
from toolkit_core.host.stoppable import Stop, StoppedError
from toolkit_core.limits import REGEX_WORKER_FILE_BYTES, SEARCH_STDERR_BYTES
from toolkit_core.line_ends import speaks_of_cr

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from toolkit_core.host.search_place import Place
    from toolkit_core.ports.search import GrepQuery

_PROGRAM: Final = Path(__file__).with_name("regex_worker.py")
_MISREAD: Final = re.compile(r"\[:\^?[a-z]+:\]|(?<!\\)(?:\\\\)*\\(?:[<>]|b\{(?:start|end))")
"""What means something to ripgrep and something else to `re`, which says nothing: [:alpha:], \\<, \\>, \\b{start}."""

_ORPHAN_SECONDS: Final = 5.0  # after the owner's own deadline


class SpansLinesError(Exception):
    """The pattern holds a line feed and the search goes line by line."""


def search_with_re(
    query: GrepQuery, place: Place, names: Iterable[str], on_output: Callable[[bytes], bool], stop: Stop
) -> int | None:
    """Search the named files (relative to the place's root) with Python's `re`, in a process of its own.

    Returns:
        How many files could not be read; None when `on_output` or the time stopped it.

    Raises:
        PatternRefusedError: `re` does not take the pattern.
        SpansLinesError: It can only match across lines.
        StoppedError: `stop` was called.
        ToolError: `unavailable`: no Python can be started; `io_error`: the worker failed.
    """
    misread = None if query.fixed_strings else _MISREAD.search(query.pattern)
    if misread is not None:
        raise PatternRefusedError(f"{misread[0]} at index {misread.start()} is not its syntax")
    read_end, write_end = os.pipe()
    try:
        child = _start(place.root, read_end)
    except OSError as e:
        os.close(write_end)
        message = f"The worker for this pattern cannot be started: {e.strerror or e}."
        raise ToolError(message, code="unavailable") from e
    finally:
        os.close(read_end)
    try:
        with stop.killing(child.kill), _fed(write_end, _job(query, place, stop), names):
            status, said = child.stream(on_output, deadline=stop.deadline, complaint_bytes=SEARCH_STDERR_BYTES)
    except BaseException:
        child.reap(at_once=True)
        raise
    if stop.requested:
        raise StoppedError
    if status == REFUSED:
        raise PatternRefusedError(said.decode("utf-8", "backslashreplace").strip())
    if status == SPANS_LINES:
        raise SpansLinesError
    return judge_exit(2 if status == 0 and said else status, said)


def _start(root: int, stdin: int) -> Child:
    argv = [sys.executable, "-I", "-S", "-X", "utf8", os.fspath(_PROGRAM)]
    return Child(argv, cwd="/", environment=environment(), keep=(root,), stdin=stdin)


def _job(query: GrepQuery, place: Place, stop: Stop) -> bytes:
    import time

    job = {
        "pattern": re.escape(query.pattern) if query.fixed_strings else query.pattern,
        "keep_cr": speaks_of_cr(query),
        "ignore_case": query.ignore_case,
        "multiline": query.multiline,
        "mode": query.mode,
        "context_lines": query.context_lines,
        "root": place.root,
        "max_bytes": REGEX_WORKER_FILE_BYTES,
        "seconds": max(0.0, stop.deadline - time.monotonic()) + _ORPHAN_SECONDS,
    }
    return json.dumps(job).encode("ascii") + b"\n"


@contextlib.contextmanager
def _fed(descriptor: int, job: bytes, names: Iterable[str]) -> Generator[None]:
    """Write the job and the names from a thread, while the caller reads; it ends with the worker."""
    failures: list[BaseException] = []

    def feed() -> None:
        try:
            with os.fdopen(descriptor, "wb", buffering=65_536) as pipe:
                pipe.write(job)
                pipe.flush()
                for name in names:
                    pipe.write(b"./" + os.fsencode(name) + b"\0")
        except (BrokenPipeError, StoppedError):
            return  # the worker was killed, or the walk's time is up
        except BaseException as e:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(e)

    thread = threading.Thread(target=feed, name="toolkit-regex-feed", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        os.close(descriptor)
        raise
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]
