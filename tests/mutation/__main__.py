"""`python -m tests.mutation [GROUP ...] [--mutants 150] [--seconds N]`: how many wrong changes do the tests notice?

Mutants are sampled evenly at random (always the same ones), run one by one against the group's own tests, and
remembered in .mutation/, so that a second run goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import mutants_of
from tests.mutation.running import preload, run

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutation"


@dataclass(frozen=True)
class Group:
    """Modules below src/toolkit_core and the tests that must notice their mutants."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "containment": Group(("host/resolve.py",), ("core/host/test_files_resolve.py", "core/host/test_root_swapped.py")),
    "edit": Group(
        ("tools/_edit_engine.py",),
        (
            "core/tools/test_edit_file.py",
            "core/tools/test_edit_file_no_match.py",
            "core/tools/test_edit_file_properties.py",
        ),
    ),
    "egress": Group(
        ("host/egress/addresses.py", "host/egress/urls.py", "host/egress/policy.py"),
        ("core/host/egress", "core/host/test_web_tls.py"),
    ),
    "policy": Group(("policy.py", "command_words.py"), ("core/test_policy.py", "core/test_policy_paths.py")),
    "envelope": Group(
        ("tool.py", "result.py"),
        (
            "core/test_tool.py",
            "core/test_result.py",
            "core/test_factories.py",
            "core/test_telemetry.py",
            "core/test_recording.py",
            "core/test_display.py",
        ),
    ),
}


def main() -> int:
    """Run what is asked for; 1 where a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--mutants", type=int, default=150, help="how many of each group")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each group")
    options = parser.parse_args()
    sys.path.insert(0, os.fspath(ROOT / "src"))
    os.chdir(ROOT)
    preload()
    survivors = [measure(name, options.mutants, options.seconds) for name in options.groups or GROUPS]
    return int(any(survivors))


def measure(name: str, wanted: int, seconds: float) -> int:
    """Run a group's sample; how many survived."""
    group = GROUPS[name]
    tests = [os.fspath(ROOT / "tests" / test) for test in group.tests]
    paths = [ROOT / "src" / "toolkit_core" / module for module in group.modules]
    began = time.monotonic()
    first = paths[0]
    if run(first, first.read_text("utf-8"), tests, within_seconds=600) != "survived":
        raise SystemExit(f"{name}: the tests fail without any mutant")
    limit = 10 + 5 * (time.monotonic() - began)
    sample = [(path, mutant) for path in paths for mutant in mutants_of(path.read_text("utf-8"))]
    known, counts = _Known(KEPT / f"{name}.jsonl"), Counter[str]()
    for path, mutant in random.Random(1).sample(sample, min(wanted, len(sample))):
        if time.monotonic() - began > seconds:
            break
        key = hashlib.sha256(f"{path.name}\n{mutant.source}".encode()).hexdigest()[:16]
        outcome = known.outcomes.get(key) or run(path, mutant.source, tests, within_seconds=limit)
        known.add(key, outcome)
        counts[outcome] += 1
        if outcome == "survived":
            _say(f"{name}: survived {path.name}:{mutant.line}: {mutant.before[:160]!r} -> {mutant.after[:160]!r}")
    _say(f"{name}: {sum(counts.values())} of {len(sample)} mutants run, {dict(counts)}")
    return counts["survived"]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class _Known:
    """Outcomes of earlier runs; a survivor is run again, for its tests may have grown."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.outcomes = {key: outcome for key, outcome in map(json.loads, lines) if outcome != "survived"}

    def add(self, key: str, outcome: str) -> None:
        if key not in self.outcomes:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, outcome]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
