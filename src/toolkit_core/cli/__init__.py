"""The `toolkit` command. One file is one subcommand: `HELP`, `configure(parser)`, `run(options) -> int`.

Works on the plain install (argparse); with the extra `cli`, rich makes it prettier.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

COMMANDS = ("demo", "tools", "call", "doctor", "ledger", "report")
"""Modules of this package, in the order that help shows them."""


class Command(Protocol):
    """What a subcommand's module holds."""

    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it; the exit code."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: The words after `toolkit`; those of the process by default.

    Returns:
        0 when it worked, 1 when it failed, 2 for wrong usage, 130 when interrupted.
    """
    parser = argparse.ArgumentParser(prog="toolkit", description="Tools for agents, from the command line.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = _load(name)
        subparser = subparsers.add_parser(name, help=command.HELP, description=command.HELP)
        command.configure(subparser)
    options = parser.parse_args(argv)
    try:
        return _load(options.command).run(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader went away (`toolkit tools | head`); say nothing more, at exit neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _load(name: str) -> Command:
    return cast("Command", import_module(f"toolkit_core.cli.{name}"))
