"""grep on this machine's files: what is found, how it is shown to the port, what is never hidden."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.search import GlobQuery, GrepFound, GrepMode, GrepQuery

LOOK = "(?=)"
"""In front of a pattern it changes nothing, but ripgrep refuses it: the worker searches."""


def fill(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + os.fsencode(name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def rows(found: GrepFound) -> list[tuple[str, int, str]]:
    return [(row.path, row.line, row.text) for row in found.rows if not row.context]


@pytest.fixture(params=["", LOOK], ids=["ripgrep", "worker"])
def look(request: pytest.FixtureRequest) -> str:
    require(find_ripgrep(), "ripgrep")
    return str(request.param)


async def test_the_same_rows_come_from_both_engines(tmp_path: Path, look: str) -> None:
    fill(
        tmp_path,
        {
            "log:7:old.txt": b"xxx\n",
            "part:a/f.txt": b"xxx\n",
            "new\nline": b"xxx\n",
            "two words": b"a\nxxx",
            ".hidden/f": b"xxx\n",
            "bad\udcff.txt": b"xxx \xff\xe9\n",
            "utf16.txt": "xxx 16\r\n".encode("utf-16"),
            "bom.txt": b"\xef\xbb\xbfxxx bom\n",
        },
    )
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "xxx"))
    assert found.engine == ("python re" if look else "ripgrep")
    assert rows(found) == [
        (".hidden/f", 1, "xxx"),
        ("bad\udcff.txt", 1, r"xxx \xff\xe9"),
        ("bom.txt", 1, "xxx bom"),
        ("log:7:old.txt", 1, "xxx"),
        ("new\nline", 1, "xxx"),
        ("part:a/f.txt", 1, "xxx"),
        ("two words", 2, "xxx"),
        ("utf16.txt", 1, "xxx 16"),
    ]


async def test_a_dollar_matches_before_crlf_and_rows_carry_no_cr(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"w.txt": b"token\r\nrest\r\nfunction A {\r\n"})
    search = HostSearch(tmp_path)
    assert rows(await search.grep(GrepQuery(look + "token$"))) == [("w.txt", 1, "token")]
    assert rows(await search.grep(GrepQuery(look + "function"))) == [("w.txt", 3, "function A {")]


async def test_context_gaps_and_cuts_are_marked(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"a": b"1\nhit\n3\n4\n5\nhit " + b"x" * 600 + b"\n7\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", context_lines=1))
    assert [(row.line, row.context, row.gap, row.cut) for row in found.rows] == [
        (1, True, True, ""),
        (2, False, False, ""),
        (3, True, False, ""),
        (5, True, True, ""),
        (6, False, False, "end"),
        (7, True, False, ""),
    ]


async def test_overlapping_context_is_shown_once(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"a": b"1\nhit\n3\nhit\n5\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", context_lines=3))
    assert [row.line for row in found.rows] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", ["count", "files_with_matches"])
async def test_the_other_modes_give_files_in_order(tmp_path: Path, look: str, mode: GrepMode) -> None:
    fill(tmp_path, {"b": b"hit\nhit\n", "a/c": b"hit\r\n", "n": b"no\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", mode=mode))
    assert found.counts == (("a/c", 1), ("b", 2 if mode == "count" else 1))


async def test_a_pattern_across_lines_needs_multiline(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"m.txt": b"ein\nzwei\n", "w.txt": b"ein\r\nzwei\r\n"})
    search = HostSearch(tmp_path)
    with pytest.raises(ToolError, match="line feed") as caught:
        await search.grep(GrepQuery(look + r"ein\nzwei"))
    assert caught.value.code == "invalid_arguments"
    assert "multiline" in caught.value.hint
    found = await search.grep(GrepQuery(look + r"ein\r?\nzwei", multiline=True))
    assert [row[:2] for row in rows(found)] == [("m.txt", 1), ("m.txt", 2), ("w.txt", 1), ("w.txt", 2)]


async def test_a_pattern_that_speaks_of_cr_finds_it(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"dos.txt": b"one\r\ntwo\r\n", "unix.txt": b"one\ntwo\n"})
    search = HostSearch(tmp_path)
    assert rows(await search.grep(GrepQuery(look + r"e\r$"))) == [("dos.txt", 1, "one")]
    found = await search.grep(GrepQuery(look + r"one\r?$"))
    assert [row.path for row in found.rows] == ["dos.txt", "unix.txt"]


@pytest.mark.parametrize("pattern", [r"one\ntwo", "one\ntwo", r"on[^\n]\n{1}two", r"(one)\n(two)$", r"one$\n^two"])
async def test_a_line_feed_in_a_pattern_stands_for_any_line_end(tmp_path: Path, look: str, pattern: str) -> None:
    fill(tmp_path, {"dos.txt": b"one\r\ntwo\r\n", "unix.txt": b"one\ntwo\n"})
    search = HostSearch(tmp_path)
    found = await search.grep(GrepQuery(look + pattern, multiline=True))
    assert [row[:2] for row in rows(found)] == [("dos.txt", 1), ("dos.txt", 2), ("unix.txt", 1), ("unix.txt", 2)]


async def test_plain_text_across_lines(tmp_path: Path) -> None:
    fill(tmp_path, {"dos.txt": b"a(b\r\n[c]\r\n", "unix.txt": b"a(b\n[c]\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery("(b\n[c", fixed_strings=True, multiline=True))
    assert [row.path for row in found.rows] == ["dos.txt", "dos.txt", "unix.txt", "unix.txt"]


@pytest.mark.parametrize("pattern", ["load_rows|RowSet(", "[z-a]", "(?P<a", "a{99999999999}(", "*"])
async def test_a_broken_pattern_is_refused_with_the_reason_and_the_place(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ToolError, match="no valid regular expression") as caught:
        await HostSearch(tmp_path).grep(GrepQuery(pattern))
    assert caught.value.code == "invalid_arguments"
    assert "^" in caught.value.message or "position" in caught.value.message


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"(?<=k)=1", "k=1"),
        (r"a(?!b)", "ac"),
        (r"(\w)\1", "xx"),
        (r"(?>a+)b", "aab"),
        (r"x{,2}y\Z", "xxy"),
        (r"(?P<q>z)(?P=q)", "zz"),
    ],
)
async def test_what_ripgrep_does_not_take_python_matches(tmp_path: Path, pattern: str, line: str) -> None:
    fill(tmp_path, {"f": line.encode() + b"\nother\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(pattern))
    assert rows(found) == [("f", 1, line)]
    assert found.engine == "python re"


async def test_fixed_strings_and_case(tmp_path: Path) -> None:
    fill(tmp_path, {"f": b"A.B\nAxB\n"})
    search = HostSearch(tmp_path)
    assert rows(await search.grep(GrepQuery("a.b", fixed_strings=True, ignore_case=True))) == [("f", 1, "A.B")]
    assert rows(await search.grep(GrepQuery("(", fixed_strings=True))) == []
    assert rows(await search.grep(GrepQuery("-e", fixed_strings=True))) == []


async def test_a_file_is_a_path_and_a_missing_one_is_an_error(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"data/rows.txt": b"k=1\n", "-x": b"k=2\n"})
    search = HostSearch(tmp_path)
    assert rows(await search.grep(GrepQuery(look + "k=", path="data/rows.txt"))) == [("data/rows.txt", 1, "k=1")]
    assert rows(await search.grep(GrepQuery(look + "k=", path="-x"))) == [("-x", 1, "k=2")]
    with pytest.raises(ToolError) as caught:
        await search.grep(GrepQuery(look + "k=", path="data/missing.txt"))
    assert caught.value.code == "not_found"


async def test_a_fifo_in_the_tree_does_not_block_and_as_a_path_is_refused(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"a.txt": b"hit\n"})
    os.mkfifo(tmp_path / "pipe")
    search = HostSearch(tmp_path)
    assert rows(await search.grep(GrepQuery(look + "hit"))) == [("a.txt", 1, "hit")]
    with pytest.raises(ToolError) as caught:
        await search.grep(GrepQuery(look + "hit", path="pipe"))
    assert caught.value.code == "not_a_file"


async def test_the_limit_counts_matches_and_the_first_ones_by_path_are_shown(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {f"d{number % 7}/f{number:04}": b"hit\nhit\n" for number in range(1500)})
    search = HostSearch(tmp_path)
    query = GrepQuery(look + "hit", limit=5, context_lines=1)
    first = await search.grep(query)
    assert [(row.path, row.line) for row in first.rows] == [
        ("d0/f0000", 1),
        ("d0/f0000", 2),
        ("d0/f0007", 1),
        ("d0/f0007", 2),
        ("d0/f0014", 1),
    ]
    assert first.truncated
    for _ in range(3):
        assert await search.grep(query) == first
    assert not (await search.grep(GrepQuery(look + "hit", limit=3000))).truncated


async def test_the_file_filter_never_brings_ignored_files_back(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {".gitignore": b"*.log\n", "build.log": b"hit\n", "x/b.log": b"hit\n", "x/a.txt": b"hit\n"})
    program = find_ripgrep()
    assert program is not None
    control = subprocess.run(
        [program, "--no-require-git", "-g", "*.log", "-l", "hit", "."], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"build.log" in control.stdout  # CONTROL: as -g the filter overrides the rule
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", glob="*.log"))
    assert rows(found) == []
    assert found.skipped_ignored == 2


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.{json,xml}", ".", ["src/b/c.xml", "x.json"]),
        ("src/**/*.xml", ".", ["src/b/c.xml"]),
        ("b/*.xml", "src", ["src/b/c.xml"]),
        ("src/b/*.xml", "src", ["src/b/c.xml"]),
        ("!x.json", ".", []),
        ("[x].json", ".", ["x.json"]),
        ("*.xml", "src/b/c.xml", ["src/b/c.xml"]),
        ("*.py", "src/b/c.xml", []),
        ("odd name (1)*", ".", ["odd name (1) é.txt"]),
        ("*é.txt", ".", ["odd name (1) é.txt"]),
        ("src", ".", ["src/b/c.xml", "src/d.txt"]),
        ("src/", ".", ["src/b/c.xml", "src/d.txt"]),
        ("b/", ".", ["src/b/c.xml"]),
        ("/src/*.txt", ".", ["src/d.txt"]),
        ("/*.json", ".", ["x.json"]),
    ],
)
async def test_the_file_filter_follows_the_rules_of_glob(
    tmp_path: Path, look: str, glob: str, path: str, expected: list[str]
) -> None:
    fill(tmp_path, {"x.json": b"x", "src/b/c.xml": b"x", "src/d.txt": b"x", "odd name (1) é.txt": b"x"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "x", glob=glob, path=path))
    assert [row.path for row in found.rows] == expected


async def test_an_absolute_file_filter_below_the_root_is_understood(tmp_path: Path) -> None:
    fill(tmp_path, {"src/a.py": b"x", "a.py": b"x"})
    found = await HostSearch(tmp_path).grep(GrepQuery("x", glob=f"{tmp_path}/src/*.py"))
    assert [row.path for row in found.rows] == ["src/a.py"]


@pytest.mark.parametrize("glob", ["../*", "/etc/../x", "[z-a]", "{a,b}" * 9])
async def test_a_file_filter_that_can_match_nothing_is_refused(tmp_path: Path, glob: str) -> None:
    with pytest.raises(ToolError) as caught:
        await HostSearch(tmp_path).grep(GrepQuery("x", glob=glob))
    assert caught.value.code == "invalid_arguments"


async def test_rules_of_the_folders_above_hold_below(tmp_path: Path, look: str) -> None:
    files = {".gitignore": b"*.tmp\n/a/x/\n", "a/.gitignore": b"only/*.c\n!keep.tmp\n"}
    files |= dict.fromkeys(("a/b/f.tmp", "a/b/keep.tmp", "a/only/z.c", "a/b/only/z.c", "a/x/f", "a/b/f"), b"hit\n")
    fill(tmp_path, files)
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", path="a/b"))
    assert [row.path for row in found.rows] == ["a/b/f", "a/b/keep.tmp", "a/b/only/z.c"]
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", path="a"))
    assert [row.path for row in found.rows] == ["a/b/f", "a/b/keep.tmp", "a/b/only/z.c"]


async def test_no_ignore_file_but_gitignore_inside_the_root_counts(
    tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "home" / "rc"
    fill(tmp_path, {".gitignore": b"*\n", ".ignore": b"*\n", "home/rc": b"--max-count=0\n", "home/git/ignore": b"*\n"})
    root = fill(tmp_path / "ws", {".ignore": b"*\n", ".rgignore": b"*\n", "f": b"hit\n"})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("*\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert rows(await HostSearch(root).grep(GrepQuery(look + "hit"))) == [("f", 1, "hit")]


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        ("dist", ""),
        ("dist/app.js", ""),
        (".", "dist/*.js"),
        (".", "**/dist/**"),
        (".", "app.js"),
        ("./dist/../dist", ""),
    ],
)
async def test_an_ignored_place_that_is_named_is_searched_and_said(
    tmp_path: Path, look: str, path: str, glob: str
) -> None:
    fill(tmp_path, {".gitignore": b"dist/*\napp.js\n", "dist/app.js": b"hit\n", "dist/node_modules/x.js": b"hit\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", path=path, glob=glob))
    assert rows(found) == [("dist/app.js", 1, "hit")]
    assert found.named_ignored


async def test_git_and_node_modules_are_skipped_unless_named(tmp_path: Path, look: str) -> None:
    files = {".gitignore": b"!.git\n!node_modules\n"}
    names = (".git/config", "node_modules/e/p.json", "x/node_modules/q.js", "f")
    fill(tmp_path, files | dict.fromkeys(names, b"hit\n"))
    search = HostSearch(tmp_path)

    async def found(**query: str) -> list[str]:
        return [row.path for row in (await search.grep(GrepQuery(look + "hit", **query))).rows]  # pyright: ignore[reportArgumentType]  (names of text options)

    assert await found() == ["f"]
    assert await found(path=".git") == [".git/config"]
    assert await found(path="node_modules/e") == ["node_modules/e/p.json"]
    assert await found(glob="**/node_modules/**") == ["node_modules/e/p.json", "x/node_modules/q.js"]
    everything = await search.grep(GrepQuery(look + "hit", include_ignored=True))
    assert [row.path for row in everything.rows] == sorted(names)


async def test_an_empty_answer_counts_what_was_skipped(tmp_path: Path) -> None:
    files = {".gitignore": b"*.log\n", "a.log": b"hit\n", "node_modules/x.js": b"hit\n", ".git/objects/x": b"hit\n"}
    fill(tmp_path, files | {"b.bin": b"\0hit\n", "late.bin": b"a\n" * 100_000 + b"\0hit\n", "t.txt": b"text\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery("hit"))
    assert (found.rows, found.skipped_ignored, found.skipped_binary) == ((), 2, 2) or (
        len(found.rows),
        found.skipped_ignored,
        found.skipped_binary,
    ) == (0, 2, 2)


async def test_a_binary_file_that_matches_is_mentioned_even_as_the_path(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"b.bin": b"\0\nhit\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "hit", path="b.bin"))
    assert rows(found) == []
    assert found.skipped_binary == 1


async def test_unreadable_files_are_counted_not_hidden(tmp_path: Path) -> None:
    """As another user, since root may read everything."""
    fill(tmp_path, {"a.txt": b"hit\n", "secret.txt": b"hit\n", "closed/f": b"hit\n"})
    (tmp_path / "secret.txt").chmod(0)
    (tmp_path / "closed").chmod(0)
    if os.geteuid() != 0:
        found = await HostSearch(tmp_path).grep(GrepQuery("hit"))
        assert rows(found) == [("a.txt", 1, "hit")]
        assert found.skipped_unreadable == 2
        return
    from toolkit_core.host.ripgrep import judge_exit

    said = b"rg: ./secret.txt: Permission denied (os error 13)\nrg: ./closed: Permission denied (os error 13)\n"
    assert judge_exit(2, said) == 2


async def test_without_ripgrep_python_searches(tmp_path: Path) -> None:
    fill(tmp_path, {"a": b"hit\n", "b.bin": b"\0"})
    search = HostSearch(tmp_path, ripgrep=str(tmp_path / "absent"))
    found = await search.grep(GrepQuery("hit"))
    assert rows(found) == [("a", 1, "hit")]
    assert found.engine == "python re"
    assert rows(await search.grep(GrepQuery("h(", fixed_strings=True))) == []


@pytest.mark.parametrize("pattern", ["a\0b", "a\udcff"])
async def test_what_no_text_holds_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        await HostSearch(tmp_path).grep(GrepQuery(pattern))
    assert caught.value.code == "invalid_arguments"


async def test_giant_lines_are_cut_around_their_match(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"min.js": b"x" * 3_000_000 + b"NEEDLE" + b"y" * 3_000_000 + b"\nNEEDLE\n"})
    found = await HostSearch(tmp_path).grep(GrepQuery(look + "NEEDLE"))
    assert [(len(row.text), row.cut, "NEEDLE" in row.text) for row in found.rows] == [
        (500, "both", True),
        (6, "", True),
    ]


@pytest.mark.parametrize("root", ["with space", "colon:1:x", "ünï", "-dash", "[b]racket{a,b}"])
async def test_any_root_works(tmp_path: Path, look: str, root: str) -> None:
    fill(tmp_path / root, {"s{u,b}/f[1].txt": b"hit\n", "s{u,b}/.gitignore": b"*.log\n", "s{u,b}/x.log": b"hit\n"})
    search = HostSearch(tmp_path / root)
    assert rows(await search.grep(GrepQuery(look + "hit", path="s{u,b}"))) == [("s{u,b}/f[1].txt", 1, "hit")]
    assert rows(await search.grep(GrepQuery(look + "hit", glob="f[[]1].txt"))) == [("s{u,b}/f[1].txt", 1, "hit")]


async def test_extra_roots_and_policy_show_absolute_paths_and_heed_their_own_rules(tmp_path: Path, look: str) -> None:
    root = fill(tmp_path / "ws", {"f": b"hit\n"})
    extra = fill(tmp_path / "more", {"g": b"hit\n", "x.log": b"hit\n", ".gitignore": b"*.log\n"})
    search = HostSearch(root, extra_roots=[extra])
    assert rows(await search.grep(GrepQuery(look + "hit", path=str(extra)))) == [(f"{extra}/g", 1, "hit")]
    assert rows(await search.grep(GrepQuery(look + "hit"))) == [("f", 1, "hit")]
    free = HostSearch(root, outside="policy")
    assert rows(await free.grep(GrepQuery(look + "hit", path=f"{extra}/g"))) == [(f"{extra}/g", 1, "hit")]
    with pytest.raises(ToolError) as caught:
        await HostSearch(root).grep(GrepQuery(look + "hit", path=str(extra)))
    assert caught.value.code == "access_denied"


async def test_counting_after_an_empty_answer_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {".gitignore": b"*.log\n", "a.log": b"x", "b.txt": b"x"})
    monkeypatch.setattr("toolkit_core.host.grep.SEARCH_COUNT_SECONDS", 0.0)
    found = await HostSearch(tmp_path).grep(GrepQuery("absent"))
    assert not found.incomplete
    assert found.counts_incomplete


@pytest.mark.parametrize("pattern", ["$", r"\s*$", ";?$", r"\r?$", r"\z", r"\b$", "x*$"])
@pytest.mark.parametrize("text", ["key\n5:hello", "12:30:lunch", "hit"])
@pytest.mark.parametrize("multiline", [False, True])
async def test_a_match_of_nothing_at_the_end_shows_the_line_as_it_is(
    tmp_path: Path, pattern: str, text: str, multiline: bool
) -> None:
    require(find_ripgrep(), "ripgrep")
    fill(tmp_path, {"f": text.encode()})
    found = await HostSearch(tmp_path).grep(GrepQuery(pattern, multiline=multiline, context_lines=1))
    assert found.engine == "ripgrep"
    lines = text.split("\n")
    assert rows(found)[-1] == ("f", len(lines), lines[-1])
    assert all(row.text == lines[row.line - 1] for row in found.rows)


@pytest.mark.parametrize("path", [".", "late"])
@pytest.mark.parametrize("multiline", [False, True])
async def test_all_modes_agree_on_a_file_whose_nul_comes_late(
    tmp_path: Path, look: str, path: str, multiline: bool
) -> None:
    late = b"hit early\nhit again\n" + b"x\n" * 70_000 + b"\0 hit late\n"
    fill(tmp_path, {"late": late, "text": b"hit\n", "first": b"\0hit\n"})
    search = HostSearch(tmp_path)
    shown = await search.grep(GrepQuery(look + "hit", path, multiline=multiline))
    files = await search.grep(GrepQuery(look + "hit", path, mode="files_with_matches", multiline=multiline))
    counts = await search.grep(GrepQuery(look + "hit", path, mode="count", multiline=multiline))
    assert {row.path for row in shown.rows} == {name for name, _ in files.counts} == {name for name, _ in counts.counts}
    assert dict(counts.counts)["late"] == 2 == sum(row.path == "late" for row in shown.rows)
    assert shown.skipped_binary == counts.skipped_binary == 1


async def test_across_lines_too_the_count_is_that_of_the_lines_shown(tmp_path: Path, look: str) -> None:
    fill(tmp_path, {"f": b"a\nb\na\nb\nc\n"})
    search = HostSearch(tmp_path)
    shown = await search.grep(GrepQuery(look + r"a\nb", multiline=True))
    counts = await search.grep(GrepQuery(look + r"a\nb", multiline=True, mode="count"))
    assert len(shown.rows) == 4
    assert counts.counts == (("f", 4),)


@pytest.mark.parametrize("path", [".", "sub"])
@pytest.mark.parametrize("glob", ["b.log", "**/b.log", "dist/b.log", "sub/b.log", "{b.log,c.txt}", "sub/dist/b.log"])
async def test_a_file_filter_overrides_ignoring_as_a_name_pattern_does(
    tmp_path: Path, look: str, glob: str, path: str
) -> None:
    names = ["b.log", "sub/b.log", "dist/b.log", "sub/dist/b.log", "sub/c.txt", "a.log", "dist/c.txt"]
    fill(tmp_path, dict.fromkeys(names, b"hit\n") | {".gitignore": b"*.log\ndist/\n"})
    search = HostSearch(tmp_path)
    found = await search.grep(GrepQuery(look + "hit", path, glob))
    deep = glob if "/" in glob else f"**/{glob}"
    expected = {*(await search.glob(GlobQuery(deep, path))).paths}
    if path != "." and glob.startswith("sub/"):  # a filter may be seen from the root too
        expected |= {*(await search.glob(GlobQuery(glob))).paths}
    assert {row.path for row in found.rows} == expected
    if glob == "b.log" and path == ".":
        assert expected == {"b.log", "sub/b.log"}


def refused(folder: int, parts: Sequence[str], flags: int) -> int:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


async def test_a_file_that_cannot_be_read_is_an_error_and_no_absence(
    tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, {"f": b"hit\n"})
    (tmp_path / "f").chmod(0)
    if os.geteuid() == 0:  # root may read everything
        monkeypatch.setattr("toolkit_core.host.search_place.open_below", refused)
    with pytest.raises(ToolError) as caught:
        await HostSearch(tmp_path).grep(GrepQuery(look + "hit", "f"))
    assert caught.value.code == "io_error"
    assert caught.value.hint


async def test_what_cannot_be_found_comes_with_the_next_step(tmp_path: Path) -> None:
    for query in (GrepQuery("x", "zzz"), GrepQuery("x", glob="[z-a]"), GrepQuery("x\0"), GrepQuery("x", glob=".")):
        with pytest.raises(ToolError) as caught:
            await HostSearch(tmp_path).grep(query)
        assert caught.value.hint, query
