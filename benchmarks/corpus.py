"""A tree to search in: the files of the installed packages (hard links), hidden, ignored and binary ones among them."""

from __future__ import annotations

import os
import site
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers import KEPT

FILES = 48_000
RARE = "needle_in_the_haystack"
TWO_THOUSAND = "two_thousand_marker"
_VERSION = 1


def installed_files() -> Iterator[Path]:
    """Every regular file of the installed packages, in order."""
    for folder, folders, names in os.walk(site.getsitepackages()[0]):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink():
                yield path


def tree(files: int = FILES) -> Path:
    """The tree with so many files; made once."""
    root = KEPT / f"corpus-{_VERSION}-{files}"
    done = root.with_suffix(".complete")
    if done.exists():
        return root
    sources = [path for path in installed_files() if path.stat().st_size < 30_000_000]
    for number in range(files):
        source = sources[number % len(sources)]
        turn, part = number // len(sources), source.relative_to(site.getsitepackages()[0])
        place = root / _top(number) / (f"again{turn}" if turn else "lib") / part
        place.parent.mkdir(parents=True, exist_ok=True)
        _link(source, place)
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("build/\n*.log\n__pycache__/\n*.py[cod]\n/dist\n.venv\n", encoding="ascii")
    marked = root / "marked"
    marked.mkdir()
    for number in range(200):
        text = "".join(f"{TWO_THOUSAND} = {line}\nother = {line}\n" for line in range(10))
        (marked / f"file{number}.py").write_text(text, encoding="ascii")
    (marked / "rare.ts").write_text(f"let x = '{RARE}';\n", encoding="ascii")
    (marked / "link").symlink_to("../src")
    done.touch()
    return root


def _top(number: int) -> str:
    """One file of twelve is ignored, one hidden, one a dependency."""
    return {3: "build", 5: ".hidden", 7: "node_modules"}.get(number % 12, "src")


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except FileExistsError:
        return
    except OSError:  # another filesystem
        place.write_bytes(source.read_bytes())
