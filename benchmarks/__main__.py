"""`make bench`: every benchmark beside this file, each in a process of its own; or those named, with their options.

`make bench ARGS="calls"`, or `python -m benchmarks.shell --help` for one's own options.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Run the named benchmarks, all by default; 1 where one failed."""
    here = Path(__file__).parent
    found = sorted(p.stem for p in here.glob("[a-z]*.py") if 'if __name__ == "__main__"' in p.read_text())
    failed = False
    for name in names or found:
        print(f"--- {name}", flush=True)
        failed |= (
            subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=here.parent, check=False).returncode != 0
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
