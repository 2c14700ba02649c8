"""`python -m tests.fuzz [GROUP ...] [--seconds 600]`: fuzz groups, guided by coverage where atheris is installed.

Without atheris hypothesis makes the inputs. What a run learns is kept in .fuzz/GROUP, and the next one goes on from it.
A finding is printed with the input that shows it, and ends the group with status 1.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[2] / ".fuzz"


def main(argv: list[str]) -> int:
    """Each group in a process of its own; 1 where one found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    parser.add_argument("--seconds", type=int, default=600, help="for each group")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.here:
        return run_here(options.groups[0], options.seconds)
    from tests.fuzz.groups import GROUPS

    command = [sys.executable, "-m", "tests.fuzz", "--here", "--seconds", str(options.seconds)]
    ended = [subprocess.run([*command, name], check=False).returncode for name in options.groups or GROUPS]
    return int(any(ended))


def run_here(name: str, seconds: int) -> int:
    """Fuzz one group in this process."""
    (KEPT / name).mkdir(parents=True, exist_ok=True)
    if find_spec("atheris") is not None:
        return guided(name, seconds)
    return unguided(name, seconds)


def guided(name: str, seconds: int) -> int:
    """libFuzzer over hypothesis's own bytes; it ends the process itself."""
    import atheris  # pyright: ignore[reportMissingImports]  (optional: it has wheels for few systems)

    lib: Any = atheris
    with lib.instrument_imports(include=["toolkit_core"]):
        from tests.fuzz.groups import GROUPS
    from hypothesis import given, settings

    group = GROUPS[name]
    test: Any = settings(deadline=None, database=None)(given(group.inputs)(group.check))
    limits = [
        f"-max_total_time={seconds}",
        "-timeout=30",
        "-rss_limit_mb=2048",
        "-max_len=8192",
        "-print_final_stats=1",
    ]
    _plant(KEPT / name)
    lib.Setup(["fuzz", str(KEPT / name), f"-artifact_prefix={KEPT / name}/", *limits], test.hypothesis.fuzz_one_input)
    lib.Fuzz()
    return 0


def _plant(folder: Path) -> None:
    """Long random beginnings: an input needs many bytes before hypothesis can make a whole value of them."""
    for number in range(64):
        (folder / f"seed-{number}").write_bytes(random.Random(number).randbytes(4_096))


def unguided(name: str, seconds: int) -> int:
    """hypothesis, run after run with new seeds until the time is over."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    from tests.fuzz.groups import GROUPS

    group, until, ran = GROUPS[name], time.monotonic() + seconds, 0
    kept = DirectoryBasedExampleDatabase(KEPT / name)
    options = settings(
        max_examples=500,
        deadline=None,
        database=kept,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )

    def counted(sent: Any) -> None:
        nonlocal ran
        ran += 1
        group.check(sent)

    while time.monotonic() < until:
        seed(time.time_ns())(options(given(group.inputs)(counted)))()
    sys.stdout.write(f"{name}: {ran:,} inputs in {seconds} s, nothing found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
