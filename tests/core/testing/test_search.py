"""The Search in memory answers as the one on disk does, on random trees and random questions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support import require, soak
from toolkit_core.errors import ToolError
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.search import GlobQuery, GrepQuery
from toolkit_core.testing.search import InMemorySearch

_NAMES = ["a", "b", "ab", "a.py", "b.log", "foo", "x y", "build", "node_modules", ".git", "[s]", "q.tmp"]
_RULES = ["*.log", "build", "/foo", "foo/", "a/b", "*.tmp", "b/*", "ab/*.py", "**/x y", "x y/**", "[s]"]
_GLOBS = [
    *(
        "*",
        "**/*",
        "*.py",
        "**/*.py",
        "a/*",
        "build/*",
        "**/b/*",
        "{a,b}/**",
        "node_modules/**",
        "*/",
        "[[]s]",
        "b*",
    ),
    *("**/build/**", "foo", "a/b/*", "?", "[ab]*", "!a", "**/*.log", "b.log", "ab/*.py", "x y/*"),
]
_PATTERNS = ["hit", "h.t$", "^x", "no", "hit|x", "hi(t)"]


def _tree(root: Path, chance: random.Random) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for _ in range(25):
        parts = [chance.choice(_NAMES) for _ in range(chance.randint(1, 4))]
        if chance.random() < 0.15:
            parts[-1] = ".gitignore"
        path = root.joinpath(*parts)
        content = chance.choice([b"hit\n", b"x\r\nhit\r\n", b"no\n\nhit", b"", b"\0hit\n", b"x hit x\n" * 3])
        if parts[-1] == ".gitignore":
            content = "\n".join(chance.choices(_RULES, k=2)).encode() + b"\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            continue
        files["/".join(parts)] = content
    return files


async def test_glob_and_grep_agree_with_the_disk(tmp_path: Path) -> None:
    require(find_ripgrep(), "ripgrep")
    chance = random.Random(5)
    for number in range(soak(200)):
        root = tmp_path / str(number)
        root.mkdir()
        files = _tree(root, chance)
        disk, memory = HostSearch(root), InMemorySearch(files)
        folders = [".", *sorted({path.rpartition("/")[0] for path in files} - {""})]
        for _ in range(6):
            path, everything = chance.choice(folders), chance.random() < 0.2
            question = GlobQuery(chance.choice(_GLOBS), path, include_ignored=everything)
            on_disk, in_memory = await disk.glob(question), await memory.glob(question)
            assert on_disk.paths == in_memory.paths, (files, question)
            search = GrepQuery(
                chance.choice(_PATTERNS),
                path=path,
                glob=chance.choice(["", "", *_GLOBS]),
                mode=chance.choice(["content", "count", "files_with_matches"]),
                context_lines=chance.choice([0, 1]),
                include_ignored=everything,
            )
            assert await _answer(disk, search) == await _answer(memory, search), (files, search)


async def _answer(search: HostSearch | InMemorySearch, query: GrepQuery) -> object:
    found = await search.grep(query)
    return tuple(found.rows), found.counts, found.truncated


async def test_bad_questions_have_the_same_codes(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    for search in (HostSearch(tmp_path), InMemorySearch({"f": b"x"})):
        for query, code in (
            (GrepQuery("("), "invalid_arguments"),
            (GrepQuery("x", path="none"), "not_found"),
            (GrepQuery("x", path="../up"), "access_denied"),
            (GrepQuery("x", glob="[z-a]"), "invalid_arguments"),
        ):
            with pytest.raises(ToolError) as caught:
                await search.grep(query)
            assert caught.value.code == code
