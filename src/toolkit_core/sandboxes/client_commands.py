"""The `Commands` port over any sandbox client."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ToolError
from toolkit_core.limits import COMMAND_OUTPUT_MAX_BYTES, COMMAND_TIMEOUT_SECONDS
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.sandboxes.kept_output import KeptOutput
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult, StreamName
    from toolkit_core.ports.sandbox import SandboxClient


class ClientCommands:
    """Commands in a sandbox with a filesystem of its own; they get no trace context.

    Args:
        client: The sandbox.
        cwd: The absolute folder of the sandbox that commands start in.
        max_output_bytes: Kept of each stream.

    Raises:
        ValueError: `cwd` is no absolute path.
    """

    def __init__(self, client: SandboxClient, cwd: str, *, max_output_bytes: int = COMMAND_OUTPUT_MAX_BYTES) -> None:
        self._client = client
        self._cwd = plane_folder(cwd)
        self._max_output_bytes = max_output_bytes

    @property
    def shell(self) -> str:
        """The shell of the sandbox."""
        return "sh"

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
        session: str = "default",
        traceparent: str | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command; see `Commands.run`. `cwd` is relative to the root; the sandbox is the boundary."""
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        if "\0" in cwd:
            raise ToolError("cwd has a NUL character.", code="invalid_arguments")
        folder = posixpath.join(self._cwd, cwd) if cwd else self._cwd
        try:
            result = await self._client.run(command, cwd=folder, timeout_seconds=seconds, on_output=on_output)
        except ToolError as e:
            raise about_cwd(e, f"cwd {one_line_name(cwd)}" if cwd else f"The root folder {folder}") from e
        result = self._checked(result)
        notes = "\n".join(part for part in (note, result.note) if part)
        return replace(result, note=notes)

    def _checked(self, result: CommandResult) -> CommandResult:
        """The result, its exit code believed only where it is one, its streams at the cap."""
        code: object = result.exit_code
        if code is None:
            if result.signal is None and not result.timed_out:
                raise no_exit_code("it sent none")
        elif type(code) is not int:
            raise no_exit_code(f"it sent {code!r}")
        if max(len(result.stdout), len(result.stderr)) <= self._max_output_bytes:
            return result
        out, err = KeptOutput(self._max_output_bytes), KeptOutput(self._max_output_bytes)
        out.feed(result.stdout)
        err.feed(result.stderr)
        stdout, stdout_cut, stdout_at = out.kept()
        stderr, stderr_cut, stderr_at = err.kept()
        return replace(
            result,
            stdout=stdout,
            stderr=stderr,
            stdout_cut=result.stdout_cut + stdout_cut,
            stderr_cut=result.stderr_cut + stderr_cut,
            stdout_cut_at=stdout_at if stdout_cut else result.stdout_cut_at,
            stderr_cut_at=stderr_at if stderr_cut else result.stderr_cut_at,
        )


def about_cwd(error: ToolError, shown: str) -> ToolError:
    """A client's refusal of the folder, in the words that the model knows it by."""
    if error.code == "not_found":
        return ToolError(f"{shown} does not exist (any more).", code="not_found", hint="Make it, or run elsewhere.")
    if error.code == "invalid_arguments" and "is not a folder" in error.message:
        return ToolError(f"{shown} is not a folder.", code="invalid_arguments", hint="Name the folder to run in.")
    return error


def no_exit_code(what: str) -> ToolError:
    """The sandbox did not say how the command ended: that is never success."""
    return ToolError(
        f"The sandbox did not say how the command ended: {what}.",
        code="io_error",
        hint="It may have run, in part or whole. Look at what it did before running it again.",
    )
