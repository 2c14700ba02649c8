"""glob on this machine's files: what is listed, in what order, and what an empty answer says."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolkit_core.errors import ToolError
from toolkit_core.host import walk
from toolkit_core.host.judged import Judged
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.search import GlobQuery


def touch(root: Path, *names: str) -> Path:
    for name in names:
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + os.fsencode(name)))
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    return root


async def paths(root: Path, pattern: str, **options: object) -> tuple[str, ...]:
    return (await HostSearch(root).glob(GlobQuery(pattern, **options))).paths  # pyright: ignore[reportArgumentType]  (options by name)


async def test_files_links_and_folders_are_listed_and_links_are_not_entered(tmp_path: Path) -> None:
    touch(tmp_path, "a/f.txt", "empty/", "z")
    (tmp_path / "l").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    assert await paths(tmp_path, "**/*") == ("a/", "a/f.txt", "dangling", "empty/", "l", "loop", "z")
    assert await paths(tmp_path, "*/") == ("a/", "empty/")


async def test_the_order_is_that_of_a_walk_and_a_limit_shows_the_first(tmp_path: Path) -> None:
    touch(tmp_path, "b/x", "b-c", "b.d", "a/z", "a/y/k", "B")
    everything = ("B", "a/", "a/y/", "a/y/k", "a/z", "b/", "b/x", "b-c", "b.d")
    assert await paths(tmp_path, "**/*") == tuple(sorted(everything, key=lambda p: p.rstrip("/").replace("/", "\0")))
    found = await HostSearch(tmp_path).glob(GlobQuery("**/*", limit=3))
    assert found.paths == ("B", "a/", "a/y/")
    assert found.truncated
    assert not (await HostSearch(tmp_path).glob(GlobQuery("**/*", limit=9))).truncated


async def test_by_time_the_latest_comes_first(tmp_path: Path) -> None:
    touch(tmp_path, "old", "new", "mid/f")
    for name, when in (("old", 1), ("new", 9), ("mid/f", 5), ("mid", 3)):
        os.utime(tmp_path / name, ns=(when * 10**9, when * 10**9))
    assert await paths(tmp_path, "**/*", sort="modified") == ("new", "mid/f", "mid/", "old")
    found = await HostSearch(tmp_path).glob(GlobQuery("**/*", sort="modified", limit=2))
    assert found.paths == ("new", "mid/f")
    assert found.truncated


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("src/**/*.{json,xml}", ("src/a.json", "src/b/c.xml")),
        ("[{]kind[}]*.md", ("{kind} a.md",)),
        ("*yearly budget*.md", ("yearly budget a.md",)),
        ("./src/*.json", ("src/a.json",)),
        ("src/a.json", ("src/a.json",)),
        ("{src,none}/*.json", ("src/a.json",)),
        ("!not", ("!not",)),
        ("bad*.txt", ("bad\udcff.txt",)),
        ("new*", ("new\nline",)),
        ("*.JSON", ()),
    ],
)
async def test_patterns_find_what_they_name(tmp_path: Path, pattern: str, expected: tuple[str, ...]) -> None:
    names = ("src/a.json", "src/b/c.xml", "{kind} a.md", "yearly budget a.md", "!not", "bad\udcff.txt", "new\nline")
    touch(tmp_path, *names)
    assert await paths(tmp_path, pattern) == expected


async def test_ignored_entries_are_left_out_unless_named_or_asked_for(tmp_path: Path) -> None:
    touch(tmp_path, "dist/app.js", "out/a.js", "out/sub/b.js", "a.log", "node_modules/e/p.json", ".git/config", "k.js")
    (tmp_path / ".gitignore").write_text("dist/\nout/*\n*.log\n")
    assert await paths(tmp_path, "**/*.js") == ("k.js",)
    assert await paths(tmp_path, "dist/*.js") == ("dist/app.js",)
    assert await paths(tmp_path, "**/dist/*.js") == ("dist/app.js",)
    assert await paths(tmp_path, "out/**/*.js") == ("out/a.js", "out/sub/b.js")
    assert await paths(tmp_path, "**/out/*.js") == ("out/a.js",)
    assert await paths(tmp_path, "*.js", path="dist") == ("dist/app.js",)
    assert await paths(tmp_path, "a.log") == ("a.log",)
    assert await paths(tmp_path, "node_modules/e/*") == ("node_modules/e/p.json",)
    assert await paths(tmp_path, ".git/*") == (".git/config",)
    everything = await paths(tmp_path, "**/*.{js,log,json}", include_ignored=True)
    assert everything == ("a.log", "dist/app.js", "k.js", "node_modules/e/p.json", "out/a.js", "out/sub/b.js")


async def test_nested_rules_hold_from_any_start(tmp_path: Path) -> None:
    touch(tmp_path, "a/b/keep.tmp", "a/b/x.tmp", "a/b/y")
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    (tmp_path / "a" / ".gitignore").write_text("!keep.tmp\n")
    assert await paths(tmp_path, "**/b/*") == ("a/b/keep.tmp", "a/b/y")
    assert await paths(tmp_path, "*", path="a/b") == ("a/b/keep.tmp", "a/b/y")
    assert await paths(tmp_path / "a", "b/*") == ("b/keep.tmp", "b/x.tmp", "b/y")  # the file above is outside


async def test_an_empty_answer_says_what_it_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "src/m.py", "src/deep/n.py", "x.log", "app/[slug]/page.tsx")
    (tmp_path / ".gitignore").write_text("*.log\n")
    search = HostSearch(tmp_path)
    assert (await search.glob(GlobQuery("*.py"))).deeper_count == 2
    assert (await search.glob(GlobQuery("**/*.rs"))).deeper_count is None
    found = await search.glob(GlobQuery("?.log"))
    assert (found.ignored_count, found.deeper_count) == (1, 0)
    assert (await search.glob(GlobQuery("app/[slug]/page.tsx"))).literal
    assert (await search.glob(GlobQuery("none/*.py"))).deeper_count == 0
    assert not (await search.glob(GlobQuery("app/[[]slug]/*"))).literal


@pytest.mark.parametrize(
    ("pattern", "path", "code"),
    [
        ("../*", ".", "access_denied"),
        ("../../**/*", "a", "access_denied"),
        ("/etc/*", ".", "access_denied"),
        ("/**", ".", "access_denied"),
        ("*", "/etc", "access_denied"),
        ("*/../*", ".", "invalid_arguments"),
        ("[z-a]", ".", "invalid_arguments"),
        ("*", "missing", "not_found"),
        ("*", "a/f", "invalid_arguments"),
        ("*", "pipe", "not_a_file"),
        ("a\0b", ".", "invalid_arguments"),
    ],
)
async def test_what_cannot_be_listed_is_an_error_with_its_code(
    tmp_path: Path, pattern: str, path: str, code: str
) -> None:
    touch(tmp_path, "a/f")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError) as caught:
        await HostSearch(tmp_path).glob(GlobQuery(pattern, path))
    assert caught.value.code == code


async def test_other_spellings_of_a_place_inside_are_understood(tmp_path: Path) -> None:
    touch(tmp_path, "a/f", "b/g")
    assert await paths(tmp_path, "../b/*", path="a") == ("b/g",)
    assert await paths(tmp_path, "a/../b/*") == ("b/g",)
    assert await paths(tmp_path, f"{tmp_path}/**/f") == ("a/f",)
    (tmp_path / "link").symlink_to("a")
    assert await paths(tmp_path, "*", path="link") == ("a/f",)
    assert await paths(tmp_path, "link/*") == ("a/f",)


async def test_extra_roots_are_shown_absolute(tmp_path: Path) -> None:
    root, extra = touch(tmp_path / "ws", "f"), touch(tmp_path / "more", "g")
    (extra / ".gitignore").write_text("*.log\n")
    touch(extra, "x.log")
    search = HostSearch(root, extra_roots=[extra])
    assert (await search.glob(GlobQuery("*", str(extra)))).paths == (f"{extra}/.gitignore", f"{extra}/g")
    assert (await search.glob(GlobQuery(f"{extra}/*"))).paths == (f"{extra}/.gitignore", f"{extra}/g")


async def test_with_policy_the_program_decides_on_places_outside(tmp_path: Path) -> None:
    root, other = touch(tmp_path / "ws", "f"), touch(tmp_path / "other", "g")
    assert (await HostSearch(root, outside="policy").glob(GlobQuery("*", str(other)))).paths == (f"{other}/g",)


async def test_a_tree_deeper_than_the_descriptors_is_walked(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("dd", dir_fd=folder)
        deeper = os.open("dd", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    found = await paths(tmp_path, "**/leaf")
    assert found == ("dd/" * 300 + "leaf",)
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before


async def test_a_wide_tree_stops_at_the_limit(tmp_path: Path) -> None:
    for number in range(40):
        touch(tmp_path, *(f"d{number:02}/f{other:03}" for other in range(100)))
    found = await HostSearch(tmp_path).glob(GlobQuery("**/f*", limit=150))
    assert len(found.paths) == 150
    assert found.paths[-1] == "d01/f049"
    assert found.truncated


async def test_when_the_time_is_up_the_answer_says_so(tmp_path: Path) -> None:
    touch(tmp_path, "a/f", "b/g")
    found = await HostSearch(tmp_path, budget_seconds=0.0).glob(GlobQuery("**/*"))
    assert found.incomplete


def test_a_folder_swapped_for_a_link_is_not_entered(tmp_path: Path) -> None:
    secret = touch(tmp_path / "outside", "secret")
    touch(tmp_path / "ws", "d/f")
    control = sorted(name for _, _, names in os.walk(tmp_path / "ws", followlinks=True) for name in names)
    assert control == ["f"]
    (tmp_path / "ws" / "d" / "f").unlink()
    (tmp_path / "ws" / "d").rmdir()
    (tmp_path / "ws" / "d").symlink_to(secret)
    control = sorted(name for _, _, names in os.walk(tmp_path / "ws", followlinks=True) for name in names)
    assert control == ["secret"]  # CONTROL: a walk that follows it is outside
    root = os.open(tmp_path / "ws", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            open_parts(root, ["d", "secret"])
    finally:
        os.close(root)


def open_parts(root: int, parts: Sequence[str]) -> int:
    return walk.open_below(root, parts, os.O_RDONLY)


@pytest.mark.parametrize("pattern", [".", "./", "a/..", "a/../", "../x/.."])
async def test_a_pattern_that_names_a_folder_and_nothing_in_it_is_refused(tmp_path: Path, pattern: str) -> None:
    touch(tmp_path / "root", "a/f")
    with pytest.raises(ToolError) as caught:
        await paths(tmp_path / "root", pattern)
    assert caught.value.code == "invalid_arguments"
    assert "brace" not in caught.value.message
    assert "*" in caught.value.message + caught.value.hint


async def test_dots_inside_a_pattern_still_lead_up(tmp_path: Path) -> None:
    touch(tmp_path, "a/f", "b")
    assert await paths(tmp_path, "a/../*") == ("a/", "b")
    assert await paths(tmp_path, "./a/./*") == ("a/f",)


async def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "noread/f")
    (tmp_path / "noread").chmod(0)

    def refused(judged: Judged, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    if os.geteuid() == 0:  # root may read everything
        monkeypatch.setattr(Judged, "reopen", refused)
    with pytest.raises(ToolError) as caught:
        await paths(tmp_path, "noread/*")
    (tmp_path / "noread").chmod(0o700)
    assert caught.value.code == "io_error"
    assert caught.value.message.startswith("noread cannot be searched")
    assert caught.value.hint


@pytest.mark.parametrize(("pattern", "path"), [("*", "zzz"), ("[z-a]", "."), ("a\0", "."), ("\udc80", ".")])
async def test_every_refusal_comes_with_the_next_step(tmp_path: Path, pattern: str, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        await paths(tmp_path, pattern, path=path)
    assert caught.value.hint
