"""Answers of somebody else's SDK: nothing in them is believed unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.sandboxes.client_commands import no_exit_code
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_CODES: Final[tuple[tuple[str, ErrorCode], ...]] = (
    ("SandboxNotRunningException", "unavailable"),
    ("SandboxUnreachableException", "unavailable"),
    ("SandboxNotFoundException", "unavailable"),
    ("SandboxNotFoundError", "unavailable"),
    ("SandboxNotReadyError", "unavailable"),
    ("AuthenticationException", "unavailable"),
    ("RateLimitException", "rate_limited"),
    ("NotEnoughSpaceException", "io_error"),
    ("TimeoutException", "timed_out"),
    ("TimeoutError", "timed_out"),
    ("NotFoundException", "not_found"),
    ("FileNotFoundError", "not_found"),
    ("IsADirectoryError", "is_a_directory"),
    ("InvalidArgumentException", "invalid_arguments"),
)
"""Class names of an exception and its bases, the first that fits; SDKs are not imported to ask."""


def exit_code_of(answer: object) -> int:
    """The exit code of a completed command: `exit_code` or `exitCode`, a real integer, and the same in both.

    Raises:
        ToolError: `io_error`: none, not an integer, or two that differ.
    """
    values = [value for name in ("exit_code", "exitCode") if (value := _field(answer, name)) is not None]
    if not values:
        raise no_exit_code("it sent none")
    for value in values:
        if type(value) is not int:
            raise no_exit_code(f"it sent {value!r}")
    if len(set(map(repr, values))) > 1:
        raise no_exit_code(f"it sent both {values[0]!r} and {values[1]!r}")
    return cast("int", values[0])


def has_exit_code(answer: object) -> bool:
    """Whether something says how a command ended, rightly or not."""
    return any(_field(answer, name) is not None for name in ("exit_code", "exitCode"))


def stream_of(answer: object, name: str) -> bytes:
    """A stream of a completed command. Raises `ToolError` `io_error` where it is no text."""
    value = _field(answer, name)
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace")
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise ToolError(f"The sandbox sent {type(value).__name__} as {name}.", code="io_error")


def content_of(answer: object, path: str) -> bytes:
    """The content of a file. Raises `ToolError` `io_error` where it is none."""
    if isinstance(answer, bytes | bytearray):
        return bytes(answer)
    if isinstance(answer, str):
        return answer.encode("utf-8", "surrogateescape")
    message = f"The sandbox sent {type(answer).__name__} in place of {one_line_name(path)}."
    raise ToolError(message, code="io_error")


def code_of(error: BaseException) -> ErrorCode | None:
    """What kind of failure an SDK's exception is, by the names of its classes."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return next((code for name, code in _CODES if name in names), None)


def foreign_error(error: Exception, doing: str) -> ToolError:
    """An SDK's exception as a `ToolError`."""
    code = code_of(error) or "unavailable"
    said = " ".join(str(error).split()) or "no message"
    retryable = code in ("unavailable", "rate_limited", "timed_out")
    message = f"The sandbox failed while {doing}: {one_line_name(said[:500])} ({type(error).__name__})."
    return ToolError(message, code=code, retryable=retryable)


def methods_of(given: object, what: str, names: Sequence[str]) -> None:
    """Refuse, when a client is built, an object that is not what it should be. Raises TypeError."""
    missing = [name for name in names if not _has(given, name)]
    if missing:
        raise TypeError(f"{type(given).__name__} is not {what}: it has no {', '.join(missing)}")


def _has(given: object, dotted: str) -> bool:
    for name in dotted.split("."):
        given = getattr(given, name, None)
    return callable(given)


def _field(answer: object, name: str) -> object:
    if isinstance(answer, dict):
        return cast("dict[str, object]", answer).get(name)
    value: object = getattr(answer, name, None)
    return value
