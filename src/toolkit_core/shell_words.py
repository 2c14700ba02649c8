"""Words for a POSIX shell, for paths of any bytes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from toolkit_core.text import first_surrogate

if TYPE_CHECKING:
    from collections.abc import Sequence


def assigned(name: str, value: str) -> str:
    """A line that sets a shell variable; bytes that are not UTF-8 (surrogates of PEP 383) are made by printf.

    Example:
        >>> assigned("p", "a b")
        "p='a b'"
    """
    if first_surrogate(value) is None:
        return f"{name}={shlex.quote(value)}"
    # The `/` keeps line feeds at the end, which a substitution would drop.
    return f"{name}=$(printf '{_octal(value)}/'); {name}=${{{name}%/}}"


def arguments(values: Sequence[str]) -> str:
    """A line that makes these the positional parameters, `"$@"`."""
    if all(first_surrogate(value) is None for value in values):
        return "set -- " + " ".join(map(shlex.quote, values))
    lines = ["set --"]
    for value in values:
        lines += [assigned("a", value), 'set -- "$@" "$a"']
    return "\n".join(lines)


def _octal(value: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in value.encode("utf-8", "surrogateescape"))
