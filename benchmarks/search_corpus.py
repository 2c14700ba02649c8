"""A tree to search in, the same every time: sources, logs, binaries, ignored and hidden files, links."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILES = 47_700
_WORDS = [
    "return",
    "import",
    "class",
    "def",
    "self",
    "value",
    "index",
    "buffer",
    "stream",
    "config",
    "parse",
    "handler",
    "request",
    "response",
    "error",
    "token",
    "node",
    "tree",
    "path",
    "file",
    "line",
    "count",
    "limit",
    "offset",
    "result",
    "cache",
    "queue",
    "worker",
    "thread",
    "lock",
    "signal",
    "event",
    "state",
    "build",
    "test",
    "data",
]
_MARK = "corpus-5"
RARE = "needle_in_the_haystack"
TWO_THOUSAND = "two_thousand_marker"


def make_corpus(folder: Path, *, files: int = FILES) -> Path:
    """Make the tree once below `folder` and return its root; some 740 MB at the full number of files."""
    root = folder / f"{_MARK}-{files}"
    if (root / ".complete").exists():
        return root
    chance = random.Random(7)
    blocks = [_source(chance) for _ in range(64)]
    sources = files * 40 // 48
    for number in range(sources):
        place = root / f"pkg{number % 40:02d}" / f"mod{number // 40 % 25:02d}" / f"unit{number // 20_000}"
        suffix = (".py", ".ts", ".md", ".json")[number % 4]
        text = "".join(chance.choices(blocks, k=chance.randint(1, 9)))
        if number % max(1, sources // 2000) == 0:
            text += f"    {TWO_THOUSAND} = {number}\n"
        _write(place / f"file{number:05d}{suffix}", text)
    for number in range(files - sources):
        kind = number % 4
        name = f"f{number:05d}"
        if kind == 0:
            _write(root / "node_modules" / f"dep{number % 97}" / "lib" / f"{name}.js", blocks[number % 64])
        elif kind == 1:
            _write(root / ".git" / "objects" / f"{number % 256:02x}" / name, blocks[number % 64])
        elif kind == 2:
            _write(root / "build" / "out" / f"d{number % 50}" / f"{name}.o", blocks[number % 64])
        else:
            _write(root / f".hidden{number % 20}" / f"{name}.yaml", blocks[number % 64])
    for number in range(60):
        data = chance.randbytes(65_536) * (80 * files // FILES)
        _write_bytes(root / "assets" / f"image{number:02d}.bin", b"\x89BIN\x00" + data)
    for number in range(20):
        (root / "pkg00" / f"link{number}").symlink_to("../pkg01")
    (root / ".gitignore").write_text("build/\n*.log\n__pycache__/\n*.py[cod]\n/dist\n.venv\n", encoding="ascii")
    with (root / "pkg33" / "mod02" / "unit0" / "file01113.ts").open("a", encoding="ascii") as file:
        file.write(f"let x = '{RARE}';\n")
    (root / ".complete").touch()
    return root


def _source(chance: random.Random) -> str:
    lines: list[str] = []
    for _ in range(60):
        indent = "    " * chance.randint(0, 3)
        lines.append(indent + " ".join(chance.choices(_WORDS, k=chance.randint(1, 9))))
    if chance.random() < 0.05:
        lines.insert(30, "    uncommon_marker = 1")
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode("ascii"))


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
