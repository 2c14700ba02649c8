"""`python -m benchmarks [--quick] [ROW ...]`: ours, other libraries' tools and the bare machine, in one table.

ROW is a part of a row's name. Ratios are the
medians of pairs of runs; every way runs in turns with the others. A peer is
installed once into an environment of its own below .bench/, which is also where the corpus lies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import calls, files, gaps, growth, search, shell, web
from benchmarks.measuring import measure
from benchmarks.peers import KEPT, Peers
from benchmarks.table import line, markdown

if TYPE_CHECKING:
    from benchmarks.row import Measured, Row

GUARD = 2.0
QUICK_GUARD = 3.0
"""A row this far above its target is a regression and fails the run; nearer ones are told, and RESULTS.md says why."""


def main() -> int:
    """Measure and print; 1 where a row is far above its target, or grew with an exponent that is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ROW")
    parser.add_argument("--quick", action="store_true", help="small corpora, three rounds, no growth, generous bounds")
    parser.add_argument("--large", action="store_true", help="growth up to 200,000 files, 5 GB, 1,000,000 entries")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    peers = Peers(install=not options.quick)
    for name in peers.absent:
        print(f"absent peer: {name}", flush=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        try:
            done = asyncio.run(run(peers, Path(folder), options))
        finally:
            peers.close()
    if options.json:
        options.json.write_text(json.dumps([row.to_dict() for row in done], indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(done, peers.absent, " ".join(["python -m benchmarks", *sys.argv[1:]])))
    bound = QUICK_GUARD if options.quick else GUARD
    ratios = [row for row in done if row.unit in ("x", "exponent")]  # absolute times say more of the machine than of us
    for row in (lost := [row for row in ratios if row.value > bound * row.target]):
        print(f"regression: {row.name} is at {row.value:.2f}, more than {bound:g} x its target of {row.target:g}")
    return int(bool(lost))


async def run(peers: Peers, folder: Path, options: argparse.Namespace) -> list[Measured]:
    """The rows whose names are wanted, each printed when it is done."""
    done: list[Measured] = []
    for row in wanted_rows(peers, folder, options):
        if not options.names or any(name in row.name for name in options.names):
            done.append(await measure(row, quick=options.quick))
            print(line(done[-1]), flush=True)
    return done


def wanted_rows(peers: Peers, folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """All of them; those of a subject are only prepared when the ones before are measured."""
    subjects = [calls.rows, files.rows, search.rows, shell.rows, web.rows, gaps.rows]
    if not options.quick:
        subjects.append(partial(growth.rows, large=options.large))
    for number, subject in enumerate(subjects):
        place = folder / str(number)
        place.mkdir()
        yield from subject(peers, place, quick=options.quick)


if __name__ == "__main__":
    sys.exit(main())
