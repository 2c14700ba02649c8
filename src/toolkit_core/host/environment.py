"""What environment a command gets: always a fresh copy."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Final, Literal

from toolkit_core.limits import ENVIRONMENT_ALLOWED, ENVIRONMENT_ALLOWED_PREFIXES

EnvironmentChoice = Literal["allowlist", "inherit"] | Mapping[str, str]

_TRACE_VARIABLES: Final = frozenset({"TRACEPARENT", "TRACESTATE"})
_FOLDER_VARIABLES: Final = frozenset({"PWD", "OLDPWD"})
_TRACEPARENT: Final = re.compile(r"[\x21-\x7e]{1,256}")


class CommandEnvironment:
    """Makes environments.

    Args:
        choice: "allowlist" (`limits.ENVIRONMENT_ALLOWED`), "inherit", or the very variables.

    Raises:
        ValueError: Another word, or a variable that no environment can hold.
    """

    def __init__(self, choice: EnvironmentChoice) -> None:
        if isinstance(choice, str):
            if choice not in ("allowlist", "inherit"):
                raise ValueError(f"env must be 'allowlist', 'inherit' or a mapping, not {choice!r}")
            self._choice: EnvironmentChoice = choice
            return
        self._choice = dict(choice)
        for name, value in self._choice.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"the environment variable {name!r} has an impossible name or a NUL in its value")

    def make(self, *, traceparent: str | None = None, scratch: str | None = None) -> dict[str, str]:
        """A fresh environment.

        Trace context comes only from the call (https://www.w3.org/TR/trace-context/): what this process was
        given belongs to another span. Temporary files and caches go to `scratch`, unless a mapping says
        otherwise.
        """
        made = {name: value for name, value in self._source().items() if name not in _TRACE_VARIABLES}
        if traceparent is not None and _TRACEPARENT.fullmatch(traceparent):
            made["TRACEPARENT"] = traceparent
        explicit = () if isinstance(self._choice, str) else self._choice
        for name, value in _scratch_variables(scratch).items():
            if name not in explicit:
                made[name] = value
        return made

    def _source(self) -> Mapping[str, str]:
        if not isinstance(self._choice, str):
            return self._choice
        if self._choice == "inherit":
            return {name: value for name, value in os.environ.items() if name not in _FOLDER_VARIABLES}
        return {name: value for name, value in os.environ.items() if _is_allowed(name)}


def _is_allowed(name: str) -> bool:
    if sys.platform == "win32":
        name = name.upper()
    return name in ENVIRONMENT_ALLOWED or name.startswith(ENVIRONMENT_ALLOWED_PREFIXES)


def _scratch_variables(scratch: str | None) -> dict[str, str]:
    if scratch is None:
        return {}
    cache = os.path.join(scratch, "cache")
    names = ("TEMP", "TMP") if sys.platform == "win32" else ("TMPDIR",)
    return {
        **dict.fromkeys(names, scratch),
        "XDG_CACHE_HOME": cache,
        "PIP_CACHE_DIR": os.path.join(cache, "pip"),
        "npm_config_cache": os.path.join(cache, "npm"),
    }
