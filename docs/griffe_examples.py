"""Griffe extension: an `Example:` of our docstrings is a section of code, as `Examples:` is."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Renames the section before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that has been loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^(\s*)Example:$", r"\1Examples:", obj.docstring.value)
