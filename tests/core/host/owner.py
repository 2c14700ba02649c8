"""A Python process that runs commands until it is killed: `python -m tests.core.host.owner FOLDER COMMAND...`.

Prints `ready` once it is about to run; each command runs at once with the others. `--fork` makes it leave a forked
sibling that holds all its descriptors. `--processes` starts background processes instead. `--session` names one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import warnings

from toolkit_core.host.commands import HostCommands
from toolkit_core.host.processes import HostProcesses


def _ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


async def main(folder: str, options: set[str], commands: list[str]) -> None:
    """Run the commands; never returns by itself when they do not."""
    if "--processes" in options:
        processes = HostProcesses(folder)
        for command in commands:
            await processes.start(command)
        _ready()
        await asyncio.sleep(600)
    host = HostCommands(folder)
    _ready()
    work = asyncio.gather(*(host.run(command, timeout_seconds=600) for command in commands))
    if "--fork" in options:
        await asyncio.sleep(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of a fork beside threads
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
    await work


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background is started with it ignored
    asyncio.run(
        main(sys.argv[1], {a for a in sys.argv if a.startswith("--")}, [a for a in sys.argv[2:] if a[:2] != "--"])
    )
