"""Starts an invocation as the shell does, without needing the shell: for tests of the wrapping alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.host.environment import CommandEnvironment
from toolkit_core.host.execution import execute, readable_copies
from toolkit_core.host.supervised import Spec
from toolkit_core.ports.sandbox import Invocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit_core.host.bubblewrap import BubblewrapSandbox


@dataclass(frozen=True)
class Ended:
    """How a confined command ended."""

    exit_code: int | None
    stdout: str
    stderr: str
    note: str
    timed_out: bool = False
    signal: int | None = None

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
    shell: str = "/bin/bash",
) -> Ended:
    """Run a command in the sandbox. Raises what wrapping raises."""
    given = dict(environment) if environment is not None else CommandEnvironment("allowlist").make()
    plain = Invocation((shell, "-c", command), cwd or sandbox.root, given)
    wrapped = await sandbox.wrap(plain, command)
    assert wrapped.after_exit is not None
    with readable_copies(wrapped.descriptors) as descriptors:
        spec = Spec(
            wrapped.argv,
            wrapped.cwd,
            wrapped.environment,
            {**descriptors, **wrapped.inherited},
            timeout_seconds=timeout_seconds,
            spare_leader=wrapped.spare_leader,
        )
        try:
            done = await execute(spec, max_bytes=1 << 20, on_output=None)
        except BaseException:
            await wrapped.after_exit()
            raise
    try:
        note = await wrapped.after_exit()
    except ToolError as e:
        if not done.ending.timed_out:
            raise
        note = e.detail
    streams = [bytes(kept.data).decode("utf-8", "replace") for kept in (done.stdout, done.stderr)]
    ending = done.ending
    return Ended(ending.exit_code, streams[0], streams[1], note, ending.timed_out, ending.signal)
