"""How a call fails: the closed set of codes, the error of an envelope, and what tools raise.

The tree of exceptions::

    Exception
    └── ToolError        raised in a tool body: "this failed, tell the model"
    BaseException
    └── Suspended        raised by a port to unwind a call that the framework will replay
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

ErrorCode = Literal[
    "invalid_arguments",
    "not_found",
    "is_a_directory",
    "not_a_file",
    "binary_file",
    "access_denied",
    "denied",
    "not_read",
    "stale_file",
    "no_match",
    "ambiguous_match",
    "no_change",
    "too_large",
    "exhausted",
    "timed_out",
    "killed",
    "io_error",
    "unsupported",
    "unavailable",
    "network_error",
    "http_error",
    "rate_limited",
    "refused_url",
    "invalid_result",
    "failed",
    "internal",
]

CODES: Final[frozenset[str]] = frozenset(get_args(ErrorCode))
HARD_CODES: Final[frozenset[str]] = frozenset({"exhausted", "invalid_result", "internal"})


@dataclass(frozen=True)
class ErrorInfo:
    """Why a call failed.

    Attributes:
        code: One of `CODES`.
        message: What happened, one or two sentences.
        hint: What to do next; may be empty.
        retryable: Whether the same call may succeed later.
        cause: The exception behind an `internal` error, for the program alone: it is never
            compared, pickled, serialised or shown to a model.
    """

    code: ErrorCode
    message: str
    hint: str = ""
    retryable: bool = False
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"unknown error code {self.code!r}; the codes are {', '.join(sorted(CODES))}")

    @property
    def hard(self) -> bool:
        """Whether no payload may be pretended: exhausted, invalid_result, internal."""
        return self.code in HARD_CODES

    @property
    def text(self) -> str:
        """What the model reads of the error itself: code, message and hint."""
        return f"Error ({self.code}): {self.message}" + (f"\n{self.hint}" if self.hint else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: code, message, hint, retryable, hard."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "hard": self.hard,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cause": None}


class ToolError(Exception):
    """Raised in a tool body to say "this failed, tell the model"; `Tool.call` turns it into an envelope.

    Attributes:
        message: What happened.
        code: One of `CODES`.
        hint: What to do next.
        retryable: Whether the same call may succeed later.
        detail: Text shown under the error: output so far, partial rows, a listing.
        data: The declared payload where there is one; dropped for hard codes.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = "failed",
        hint: str = "",
        retryable: bool = False,
        detail: str = "",
        data: Any = None,
    ) -> None:
        super().__init__(message)
        if code not in CODES:
            raise ValueError(f"unknown error code {code!r}; the codes are {', '.join(sorted(CODES))}")
        self.message = message
        self.code: ErrorCode = code
        self.hint = hint
        self.retryable = retryable
        self.detail = detail
        self.data = data

    @property
    def info(self) -> ErrorInfo:
        """The same failure as the error of an envelope."""
        return ErrorInfo(self.code, self.message, self.hint, self.retryable, self.__cause__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.message, self.code, self.hint, self.retryable, self.detail, self.data)


def _rebuild(message: str, code: ErrorCode, hint: str, retryable: bool, detail: str, data: Any) -> ToolError:
    return ToolError(message, code=code, hint=hint, retryable=retryable, detail=detail, data=data)


class Suspended(BaseException):
    """A port unwinds the call, since the framework will replay it (an open question, say).

    A BaseException, so that no `except Exception` between the port and the adapter swallows it. The
    adapter raises `original` again for its framework.
    """

    def __init__(self, original: BaseException) -> None:
        super().__init__(original)
        self.original = original
