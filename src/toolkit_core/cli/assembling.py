"""The tool set that `tools` and `call` work with, from their options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit_core.tool import ToolSet


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose a set."""
    parser.add_argument("--cwd", default=".", metavar="DIR", help="the root of the tools (default: here)")
    parser.add_argument("--read-only", action="store_true", help="only the tools that change nothing")


def assemble(options: argparse.Namespace) -> ToolSet:
    """The set. What a person types needs no earlier read, so read-before-write is off.

    The host is imported here, so that `toolkit doctor` starts without it.
    """
    from toolkit_core.defaults import default_tools

    return default_tools(options.cwd, read_only=options.read_only, require_read=False)
