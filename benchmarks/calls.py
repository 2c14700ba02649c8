"""What an import and a call cost, in the core and through each framework."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median

from toolkit_core import function_tool

ROUNDS = 7
CALLS = 300


@function_tool
async def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def main() -> None:
    """Print the medians of several rounds."""
    for code in ("pass", "import toolkit_core", "from toolkit_core import function_tool"):
        print(f"python -c {code!r:<45} {import_milliseconds(code):8.1f} ms")
    asyncio.run(calls())


def import_milliseconds(code: str) -> float:
    """Wall time of a fresh interpreter, its start included."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        rounds.append(time.perf_counter() - start)
    return 1000 * median(rounds)


async def calls() -> None:
    """Microseconds a call of a tool that does nothing."""
    from toolkit_langchain import to_langchain
    from toolkit_llamaindex import to_llamaindex

    (chain,), (index,) = to_langchain([double]), to_llamaindex([double])
    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "core": lambda: double.call({"number": 21}),
        "LangChain ainvoke": lambda: chain.ainvoke({"number": 21}),
        "LlamaIndex acall": lambda: index.acall(number=21),
    }
    for name, call in ways.items():
        rounds: list[float] = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(CALLS):
                await call()
            rounds.append((time.perf_counter() - start) / CALLS)
        print(f"{name:<55} {1e6 * median(rounds):8.0f} us a call")


if __name__ == "__main__":
    main()
