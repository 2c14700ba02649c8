"""A confined `true` against the same bubblewrap arguments started by hand: `python -m benchmarks.sandbox [--rounds N]`.

By hand means: the very options and filter, no record of trust inputs, no sweep, no timeout, no output, no tree kill.
Each row is the median of paired rounds; the ratio carries over to other machines, absolute times do not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from toolkit_core.host._native.sandbox import memfd, run_to_end
from toolkit_core.host.bubblewrap import BubblewrapSandbox
from toolkit_core.ports.sandbox import Invocation

ROUNDS = 40
TARGET = 1.2
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def by_hand(argv: tuple[str, ...], contents: Mapping[int, bytes], status: int) -> None:
    """Start it, wait for it, close what was opened."""
    opened = {number: memfd(content) for number, content in contents.items()}
    try:
        code, said = run_to_end(argv, ENVIRONMENT, {**opened, 5: status}, within_seconds=30)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)
    if code != 0:
        raise SystemExit(f"bubblewrap does not start here: {said.decode(errors='replace')}")


async def measure(folder: str, rounds: int, *, strict: bool) -> tuple[float, float]:
    """Milliseconds by hand and through the sandbox."""
    sandbox = BubblewrapSandbox(folder, strict=strict)
    await sandbox.run("true")
    wrapped = await sandbox.wrap(Invocation(("/bin/bash", "-c", "true"), folder, ENVIRONMENT), "true")
    status = os.open(os.devnull, os.O_WRONLY)
    hand: list[float] = []
    ours: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        await asyncio.to_thread(by_hand, wrapped.argv, wrapped.descriptors, status)
        hand.append(time.perf_counter() - start)
        start = time.perf_counter()
        await sandbox.run("true")
        ours.append(time.perf_counter() - start)
    os.close(status)
    await sandbox.aclose()
    return 1000 * median(hand), 1000 * median(ours)


def main(rounds: int = ROUNDS) -> None:
    """Print both modes; the ratio is what counts."""
    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as folder:
        (Path(folder) / ".git").mkdir()
        for strict in (False, True):
            hand, ours = asyncio.run(measure(folder, rounds, strict=strict))
            name = "bubblewrap `true`" + (", strict" if strict else "")
            sys.stdout.write(
                f"{name:<40} by hand {hand:6.1f} ms  ours {ours:6.1f} ms  {ours / hand:5.2f} x (target {TARGET})\n"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    main(parser.parse_args().rounds)
