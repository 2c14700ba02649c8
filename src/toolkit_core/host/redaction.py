"""Secrets out of what is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from toolkit_core.limits import REDACTED_MIN_CHARS

_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)

REDACTED: Final = "[redacted]"
"""Filled up to the secret's length, its line ends kept: what a range of the text names stays where it was."""


class Redaction:
    """Replaces the values of environment variables whose name says KEY, TOKEN, SECRET or PASSWORD.

    The environment is looked at anew each time, so that a key that was set later is known too. Values shorter
    than 6 characters are left: they would blank ordinary text.

    Args:
        secrets: Further values to replace, of any length.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        if isinstance(secrets, str):
            raise TypeError("secrets are a list of values, not one string")
        self._given = tuple(secret for secret in secrets if secret)

    def __call__(self, value: Any) -> Any:
        """The plain JSON value with every secret replaced, in keys too."""
        secrets = self._secrets()
        if not secrets:
            return value
        longest_first = sorted(secrets, key=len, reverse=True)
        return _replaced(value, re.compile("|".join(map(re.escape, longest_first))))

    def _secrets(self) -> set[str]:
        named = {
            value
            for name, value in os.environ.items()
            if len(value) >= REDACTED_MIN_CHARS and _SECRET_NAME.search(name)
        }
        return named.union(self._given)


def _replaced(value: Any, secrets: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return secrets.sub(_blank, value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {secrets.sub(_blank, key): _replaced(item, secrets) for key, item in items}
    if isinstance(value, list):
        return [_replaced(item, secrets) for item in cast("list[Any]", value)]
    return value


def _blank(secret: re.Match[str]) -> str:
    text = secret[0]
    filled = REDACTED.ljust(len(text), "*") if len(text) >= len(REDACTED) else "*" * len(text)
    return "".join("\n" if old == "\n" else new for old, new in zip(text, filled, strict=True))
