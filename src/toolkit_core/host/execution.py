"""One command from its start to the last byte of its output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from toolkit_core.cleanup import finish
from toolkit_core.host.drain import Drain, HeadAndTail, Kept
from toolkit_core.host.launch import start
from toolkit_core.host.supervised import StartError
from toolkit_core.limits import COMMAND_ANSWER_SECONDS, COMMAND_DRAIN_SECONDS

if TYPE_CHECKING:
    from toolkit_core.host.supervised import Ending, Spec, Supervised
    from toolkit_core.ports.commands import StreamName

OnOutput = Callable[["StreamName", bytes], None]

_log = logging.getLogger("toolkit_core")


@dataclass(frozen=True)
class Execution:
    """What a command left: how it ended, its streams, and whether they were read to their end."""

    ending: Ending
    stdout: Kept
    stderr: Kept
    output_complete: bool


async def execute(spec: Spec, *, max_bytes: int, on_output: OnOutput | None, running: set[Supervised]) -> Execution:
    """Run a program to its end. Cancelled, it leaves nothing of it behind, then raises.

    Args:
        spec: What to run; its outputs are added here.
        max_bytes: Kept of each stream.
        on_output: Hears of output as it comes.
        running: Holds the command while it runs.

    Raises:
        StartError: The system refused; nothing ran.
        SupervisorLostError: Nobody could keep it.
        OSError: This process is out of descriptors.
    """
    with _closing() as ours:
        with _closing() as theirs:
            out = _pipe(ours, theirs)
            err = _pipe(ours, theirs)
            spec = replace(spec, descriptors={**spec.descriptors, 1: theirs[0], 2: theirs[1]})
            command = await start(spec)
        running.add(command)
        streams = _Streams(max_bytes, on_output)
        try:
            streams.open("stdout", out)
            streams.open("stderr", err)
            ours.clear()
            ending = await command.ending()
            complete = await streams.ended(COMMAND_DRAIN_SECONDS)
        except StartError:
            raise
        except BaseException:
            await finish(end(command, spec.grace_seconds))
            raise
        finally:
            running.discard(command)
            streams.close()
            command.close()
    return Execution(ending, streams.kept("stdout"), streams.kept("stderr"), complete)


async def end(command: Supervised, grace_seconds: float) -> None:
    """End a command politely; whoever keeps it is killed when that is not answered."""
    command.terminate()
    try:
        async with asyncio.timeout(grace_seconds + COMMAND_ANSWER_SECONDS):
            await command.ending()
    except TimeoutError:
        command.force()
        await command.ending()


class _Streams:
    """Both outputs of a command on their way in."""

    def __init__(self, max_bytes: int, on_output: OnOutput | None) -> None:
        self._kept = {"stdout": HeadAndTail(max_bytes), "stderr": HeadAndTail(max_bytes)}
        self._on_output = on_output
        self._drains: list[Drain] = []

    def open(self, name: StreamName, descriptor: int) -> None:
        listener = None if self._on_output is None else partial(self._tell, name)
        self._drains.append(Drain(descriptor, self._kept[name], listener))

    def _tell(self, name: StreamName, chunk: bytes) -> None:
        if self._on_output is None:
            return
        try:
            self._on_output(name, chunk)
        except Exception:  # noqa: BLE001 - a listener's fault must not fail the command
            self._on_output = None
            _log.exception("a listener for output failed; it is not called again for this command")

    async def ended(self, within_seconds: float) -> bool:
        """Wait for the end of both; False when one is still open after that time."""
        waiting = [drain.ended for drain in self._drains if not drain.ended.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=within_seconds)
        return all(drain.ended.done() for drain in self._drains)

    def close(self) -> None:
        for drain in self._drains:
            drain.close()

    def kept(self, name: StreamName) -> Kept:
        return self._kept[name].kept()


@contextlib.contextmanager
def _closing() -> Generator[list[int]]:
    descriptors: list[int] = []
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _pipe(ours: list[int], theirs: list[int]) -> int:
    readable, writable = os.pipe()
    ours.append(readable)
    theirs.append(writable)
    return readable


@contextlib.contextmanager
def readable_copies(contents: Mapping[int, bytes]) -> Generator[dict[int, int]]:
    """Number in the command -> an open descriptor that reads the bytes from offset 0."""
    with _closing() as opened:
        for content in contents.values():
            descriptor = os.memfd_create("toolkit", os.MFD_CLOEXEC)
            opened.append(descriptor)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield dict(zip(contents, opened, strict=True))
