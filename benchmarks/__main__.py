"""`make bench`: every `bench_*.py` beside this file, or those named on the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> None:
    """Run the named benchmarks, all by default; each prints its own lines."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    for name in names or found:
        print(f"--- {name}")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
