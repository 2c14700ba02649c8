"""Ending a helper program of ours, such as a container engine's command line."""

from __future__ import annotations

from asyncio.subprocess import Process
from contextlib import suppress


async def killed(process: Process) -> None:
    """Kill it where it still runs, and reap it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
