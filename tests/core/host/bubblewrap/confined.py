"""Runs a command in a sandbox, and gives its output as text."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit_core.host.bubblewrap import BubblewrapSandbox

PYTHON = os.path.realpath(sys.executable)
"""Visible in every sandbox: that of a virtual environment below /tmp is covered by the private /tmp."""


@dataclass(frozen=True)
class Ended:
    """How a confined command ended."""

    exit_code: int | None
    stdout: str
    stderr: str
    note: str
    timed_out: bool
    survivors_killed: int

    @property
    def text(self) -> str:
        """Both streams."""
        return self.stdout + self.stderr


async def confined(
    sandbox: BubblewrapSandbox,
    command: str,
    *,
    cwd: str = "",
    timeout_seconds: float = 30.0,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command in the sandbox. Raises what the sandbox raises."""
    done = await sandbox.run(command, cwd=cwd, timeout_seconds=timeout_seconds, environment=environment)
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return Ended(done.exit_code, out, err, done.note, done.timed_out, done.survivors_killed)
