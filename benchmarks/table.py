"""The table, for a terminal and for RESULTS.md."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.row import Measured

HEADER = ("work", "median", "value", "floor", "target", "to best peer", "memory", "met")


def cells(row: Measured) -> tuple[str, ...]:
    """One row's columns."""
    value = f"{row.value:.2f}" if row.unit in ("x", "exponent") else f"{row.value:.1f}"
    memory = "" if row.memory_mb is None else f"+{max(0, row.memory_mb):.0f} MB"
    if row.memory_target_mb is not None:
        memory += f" (<= {row.memory_target_mb:g})"
    return (
        row.name,
        "" if row.median_ms is None else f"{row.median_ms:.2f} ms",
        f"{value} {row.unit}",
        "" if row.floor is None else f"{row.floor:.2f}",
        f"<= {row.target:g}",
        "" if row.peer_ratio is None else f"{row.peer_ratio:.3f} ({row.best_peer})",
        memory,
        "yes" if row.met else "NO",
    )


def line(row: Measured) -> str:
    """For a terminal."""
    name, median, value, floor, target, peer, memory, met = cells(row)
    note = f"  [{row.note}]" if row.note else ""
    return f"{name:<52}{median:>13}{value:>16} {floor:>5} {target:<8}{met:<4}{memory:<18}{peer}{note}"


def markdown(rows: Sequence[Measured], absent: Sequence[str], command: str) -> str:
    """The whole of RESULTS.md's generated part."""
    lines = [
        "| " + " | ".join(HEADER) + " |",
        "|" + "---|" * len(HEADER),
        *("| " + " | ".join(cells(row)) + " |" for row in rows),
    ]
    notes = [f"- {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(
        [
            f"Made on {time.strftime('%Y-%m-%d')} by `{command}` on {machine()}.",
            f"Absent peers: {', '.join(absent) or 'none'}.",
            "",
            *lines,
            *(["", "Peers that failed:", *notes] if notes else []),
            "",
        ]
    )


def machine() -> str:
    """CPU, cores, system and Python."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    model = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")
    python = f"{platform.python_implementation()} {sys.version.split()[0]}"
    return f"{model or platform.processor()}, {os.cpu_count()} cores, {platform.platform()}, {python}"
