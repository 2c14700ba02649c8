"""One command behind a keeper: its streams without the keeper's words, and how it ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.limits import COMMAND_GRACE_SECONDS, KEEPER_KILL_SECONDS, KEEPER_NOISE_BYTES
from toolkit_core.ports.commands import CommandResult
from toolkit_core.sandboxes.kept_output import KeptOutput
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import StreamName

_SIGNALLED: Final = 128  # what a shell adds to a signal's number (POSIX sh, 2.8.2)
_ENDED: Final = re.compile(rb" (\d{1,3}) (\d{1,6})\n")

Listener = Callable[["StreamName", bytes], None]


@dataclass
class _Stream:
    """Bytes on their way in: noise before the opening words is dropped, closing words are taken out."""

    opening: bytes
    closing: bytes
    kept: KeptOutput
    tell: Callable[[bytes], None]
    opened: bool = False
    held: bytes = b""
    closed: bool = False

    def feed(self, data: bytes) -> None:
        data = self.held + data
        self.held = b""
        if not self.opened:
            _, found, rest = data.partition(self.opening)
            if not found:
                self.held = data[-KEEPER_NOISE_BYTES:]
                return
            self.opened, data = True, rest
        if self.closed:
            self.held = data
            return
        at = data.find(self.closing)
        if at >= 0:
            self.closed, self.held = True, data[at + len(self.closing) :]
            data = data[:at]
        else:
            hold = _overlap(data, self.closing)
            if hold:
                data, self.held = data[:-hold], data[-hold:]
        self._keep(data)

    def finish(self) -> None:
        """The stream has ended: what was held back as a possible closing word was output."""
        if self.opened and not self.closed and self.held:
            self._keep(self.held)
            self.held = b""

    def _keep(self, data: bytes) -> None:
        if data:
            self.kept.feed(data)
            self.tell(data)


def _overlap(data: bytes, word: bytes) -> int:
    """How many bytes at the end of `data` may be the beginning of `word`."""
    return next((size for size in range(min(len(data), len(word) - 1), 0, -1) if data.endswith(word[:size])), 0)


@dataclass
class KeeperRun:
    """The client's end of a keeper.

    Attributes:
        mark: The keeper's mark.
        where: The far side, for messages.
        max_bytes: Kept of each stream.
        listener: Hears of output, on the loop of the connection.
        exit_status: The keeper's own; None where none was sent.
        exit_signal: The signal that ended the keeper.
        closed: Set when the channel has ended.
    """

    mark: str
    where: str
    max_bytes: int
    listener: Listener | None
    exit_status: int | None = None
    exit_signal: str = ""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    started: bool = False

    def __post_init__(self) -> None:
        mark = self.mark.encode()
        self._out = _Stream(b"", b"\n" + mark, KeptOutput(self.max_bytes), partial(self._tell, "stdout"), opened=True)
        self._err = _Stream(mark + b"\n", b"\n" + mark, KeptOutput(self.max_bytes), partial(self._tell, "stderr"))
        self._head = b""

    def _tell(self, stream: StreamName, data: bytes) -> None:
        if self.listener is not None:
            self.listener(stream, data)

    def feed_stderr(self, data: bytes) -> None:
        """More of standard error."""
        self._err.feed(data)

    def feed_stdout(self, data: bytes) -> None:
        """More of standard output; it begins with the keeper's words."""
        if self.started:
            self._out.feed(data)
            return
        self._head = (self._head + data)[-KEEPER_NOISE_BYTES * 2 :]
        _, found, rest = self._head.partition(self.mark.encode() + b" started\n")
        if found:
            self.started, self._head = True, b""
            self._out.feed(rest)

    def close(self) -> None:
        """The channel has ended."""
        if not self.closed.is_set():
            self._out.finish()
            self._err.finish()
            self.closed.set()

    @property
    def ending(self) -> tuple[int, int] | None:
        """Exit code and number of survivors, as the keeper told; None where it did not get to it."""
        found = _ENDED.fullmatch(self._out.held) if self._out.closed else None
        return None if found is None or self.exit_status != 0 else (int(found[1]), int(found[2]))

    def result(self, folder: str, *, timed_out: bool, note: str, duration_seconds: float) -> CommandResult:
        """How the command ended.

        Args:
            folder: Where it was to start.
            timed_out: Its time was over and it was told to end.
            note: What to tell besides.
            duration_seconds: Wall time.

        Raises:
            ToolError: `not_found` (the folder), `killed` (the keeper was), `unavailable` (the channel was lost).
        """
        self._check_folder(folder)
        ending = self.ending
        if ending is None and not timed_out:
            raise self._unfinished()
        (stdout, out_cut, out_at), (stderr, err_cut, err_at) = self._out.kept.kept(), self._err.kept.kept()
        code, survivors = ending or (None, 0)
        signal = None
        if timed_out and code is not None and code > _SIGNALLED:
            code, signal = None, code - _SIGNALLED
        if ending is None:
            note = "\n".join(filter(None, [note, "its end was not confirmed: it may still run there"]))
        return CommandResult(
            exit_code=code,
            signal=signal,
            stdout=stdout,
            stderr=stderr,
            stdout_cut=out_cut,
            stderr_cut=err_cut,
            timed_out=timed_out,
            survivors_killed=survivors,
            duration_seconds=duration_seconds,
            note=note,
            stdout_cut_at=out_at,
            stderr_cut_at=err_at,
        )

    def _check_folder(self, folder: str) -> None:
        shown, mark = one_line_name(folder), self.mark.encode()
        if mark + b" missing\n" in self._head:
            message = f"The folder {shown} does not exist (any more)."
            raise ToolError(message, code="not_found", hint="Make it, or run elsewhere.")
        if mark + b" file\n" in self._head:
            raise ToolError(
                f"cwd {shown} is not a folder.", code="invalid_arguments", hint="Name the folder to run in."
            )
        if mark + b" closed\n" in self._head:
            raise ToolError(f"The folder {shown} cannot be entered: Permission denied (EACCES).", code="io_error")

    def _unfinished(self) -> ToolError:
        detail = (self._out.kept.kept()[0] + self._err.kept.kept()[0]).decode("utf-8", "backslashreplace")
        # A keeper's 0 comes after its closing words; sshd may send it before them, and what is missing was lost.
        if self.exit_signal or (self.exit_status and self.started):
            how = f"by {self.exit_signal}" if self.exit_signal else f"with {self.exit_status}"
            return ToolError(
                f"The command was ended early: its keeper on {self.where} ended {how}.",
                code="killed",
                hint="It may have killed the process that kept it. What it did until then stands.",
                detail=detail,
            )
        if self.exit_status is not None and not self.started:
            noise = self._head + (b"" if self._err.opened else self._err.held)
            said = noise[-400:].decode("utf-8", "backslashreplace").strip() or "no message"
            return ToolError(
                f"{self.where} did not run the command (status {self.exit_status}): {said}",
                code="unavailable",
                hint="It must give a POSIX shell.",
            )
        return lost(self.where, "The command was running" if self.started else "The command may have started", detail)


async def end(
    run: KeeperRun,
    tell: Callable[[bytes], None],
    kill_apart: Callable[[], Awaitable[object]],
    *,
    politely: bool,
) -> None:
    """End a command and wait until it is gone: by its keeper, else by a script on another channel.

    Args:
        run: The command.
        tell: Writes a line to its keeper; an OSError says that the channel is closing.
        kill_apart: Runs `killer` on another channel; what it raises is passed over.
        politely: First TERM and 2 s.
    """
    steps = [(b"TERM\n", COMMAND_GRACE_SECONDS)] * politely + [(b"KILL\n", KEEPER_KILL_SECONDS)]
    for word, seconds in steps:
        with suppress(OSError):
            tell(word)
        if await _closed(run, seconds):
            return
    with suppress(ToolError, OSError, TimeoutError):
        async with asyncio.timeout(KEEPER_KILL_SECONDS):
            await kill_apart()
    await _closed(run, KEEPER_KILL_SECONDS)


async def _closed(run: KeeperRun, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await run.closed.wait()
    return run.closed.is_set()


def lost(where: str, what: str, detail: str = "") -> ToolError:
    """The channel is gone; what happened on the far side is not known."""
    return ToolError(
        f"The connection to {where} was lost. {what}; the far side ends it.",
        code="unavailable",
        hint="What it did until then stands: look before running it again.",
        detail=detail,
    )
