from __future__ import annotations

import os
import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.errors import ToolError
from toolkit_core.host.judged import open_judged
from toolkit_core.host.resolve import Roots, resolve_within


@pytest.fixture
def tree(workspace: Path) -> Path:
    """A root with links of every kind, beside a folder whose name it is a prefix of."""
    beside = workspace.parent / "workspace-secrets"
    beside.mkdir()
    (beside / "secret.txt").write_text("secret")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a.txt").write_text("a")
    (workspace / "a.txt").write_text("root a")
    for name, target in {
        "to_sub": "sub",
        "to_a": "sub/a.txt",
        "out": "../workspace-secrets",
        "out_file": "../workspace-secrets/secret.txt",
        "out_absolute": os.fspath(beside),
        "dangling_in": "missing/file.txt",
        "dangling_out": "../workspace-secrets/new.txt",
        "dangling_chain": "dangling_out",
        "back_in": "../workspace/sub",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "self": "self",
        "sub/up": "..",
    }.items():
        (workspace / name).symlink_to(target)
    return workspace


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        (".", "."),
        ("", None),
        ("a.txt", "a.txt"),
        ("./a.txt", "a.txt"),
        (".//sub///a.txt", "sub/a.txt"),
        ("sub/../a.txt", "a.txt"),
        ("to_sub/a.txt", "sub/a.txt"),
        ("to_a", "sub/a.txt"),
        ("back_in/a.txt", "sub/a.txt"),
        ("sub/up/a.txt", "a.txt"),
        ("missing/new.txt", "missing/new.txt"),
        ("missing/../a.txt", "a.txt"),
        ("dangling_in", "missing/file.txt"),
        ("to_sub/../a.txt", "a.txt"),
        ("v1..v2.txt", "v1..v2.txt"),
        ("...", "..."),
        ("a.txt/", "a.txt"),
    ],
)
def test_every_spelling_has_one_subject(tree: Path, path: str, subject: str | None) -> None:
    if subject is None:
        with pytest.raises(ToolError) as caught:
            Roots(tree).resolve(path)
        assert caught.value.code == "invalid_arguments"
        return
    found = Roots(tree).resolve(path)
    assert (found.subject, found.inside) == (subject, True)
    assert found.real == os.fspath(tree / subject) if subject != "." else os.fspath(tree)
    assert Roots(tree).resolve(os.path.join(tree, path)).subject == subject


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../workspace-secrets/secret.txt",
        "sub/../../workspace-secrets/secret.txt",
        "missing/../../workspace-secrets/secret.txt",
        "out/secret.txt",
        "out_file",
        "out_absolute/secret.txt",
        "out/../workspace-secrets/secret.txt",
        "dangling_out",
        "dangling_chain",
        "sub/up/../workspace-secrets",
        "/etc/passwd",
        "/",
        "~",
        "~/.ssh/id_rsa",
    ],
)
def test_outside_is_refused_by_name_of_the_root_and_never_of_the_target(tree: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        Roots(tree).resolve(path)
    error = caught.value
    assert error.code == "access_denied"
    assert os.fspath(tree) in error.message
    if "workspace-secrets" not in path:
        assert "workspace-secrets" not in error.message + error.hint


def test_control_a_prefix_comparison_would_let_the_neighbour_in(tree: Path) -> None:
    path = os.path.normpath(tree / "../workspace-secrets/secret.txt")
    assert path.startswith(os.fspath(tree))
    assert Path(path).read_text() == "secret"
    assert not resolve_within(tree, path).inside


def test_an_absolute_path_outside_is_never_taken_into_the_root(tree: Path) -> None:
    (tree / "etc").mkdir()
    (tree / "etc" / "passwd").write_text("ours")
    with pytest.raises(ToolError) as caught:
        Roots(tree).resolve("/etc/passwd")
    assert "etc/passwd" in caught.value.hint


def test_dot_dot_after_a_link_leaves_the_target_as_in_the_kernel(tree: Path) -> None:
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "a.txt").write_text("deep a")
    (tree / "short").symlink_to("deep/er")
    assert Path(os.path.join(tree, "short/../a.txt")).read_text() == "deep a"
    assert Roots(tree).resolve("short/../a.txt").subject == "deep/a.txt"


@pytest.mark.parametrize("path", ["loop_a", "self", "loop_a/x"])
def test_loops_end_and_do_not_open(tree: Path, path: str) -> None:
    assert Roots(tree).resolve(path).inside
    with pytest.raises(ToolError) as caught:
        open_judged(Roots(tree), path)
    assert caught.value.code == "io_error"
    assert "ELOOP" in caught.value.message


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a\0b", "NUL"),
        ("\ud83d", "U+D83D"),
        ("x" * 256, "255"),
        ("é" * 128, "255"),
        ("a/" * 2100, "4,096"),
    ],
)
def test_what_cannot_be_a_path_is_named(tree: Path, path: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        Roots(tree).resolve(path)
    assert caught.value.code == "invalid_arguments"
    assert says in caught.value.message


@pytest.mark.parametrize("spell", ["{}/", "{}/sub/..", "{}//./", "{}-link"])
def test_a_root_may_be_spelled_in_any_way(tree: Path, spell: str) -> None:
    (tree.parent / "workspace-link").symlink_to(tree)
    roots = Roots(spell.format(tree))
    assert roots.root == os.fspath(tree)
    assert roots.resolve("a.txt").inside
    assert roots.resolve(os.fspath(tree.parent / "workspace-link" / "a.txt")).subject == "a.txt"


def test_the_filesystem_root_holds_everything() -> None:
    assert Roots("/").resolve("/etc/hostname").subject == "etc/hostname"
    assert Roots("/").resolve("etc/hostname").inside
    assert Roots("/").resolve(".").subject == "."


@pytest.mark.parametrize("root", ["", " ", None, "/no/such/folder", "\0"])
def test_an_empty_or_missing_root_raises_at_once(root: str) -> None:
    with pytest.raises(ValueError, match="root"):
        Roots(root)


def test_a_file_is_no_root(tree: Path) -> None:
    with pytest.raises(ValueError, match="not a folder"):
        Roots(tree / "a.txt")


def test_a_relative_root_is_made_absolute_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    roots = Roots("sub")
    monkeypatch.chdir("/")
    assert roots.resolve("a.txt").real == os.fspath(tree / "sub" / "a.txt")


def test_extra_roots_are_inside_under_their_absolute_path(tree: Path) -> None:
    beside = tree.parent / "workspace-secrets"
    found = Roots(tree, [beside]).resolve("out/secret.txt")
    assert (found.inside, found.subject) == (True, os.fspath(beside / "secret.txt"))
    with pytest.raises(ToolError):
        Roots(tree, [beside]).resolve("../other")


def test_policy_lets_outside_through_and_says_so(tree: Path) -> None:
    found = Roots(tree, outside="policy").resolve("out/secret.txt")
    assert (found.inside, found.subject) == (False, os.fspath(tree.parent / "workspace-secrets" / "secret.txt"))


def test_outside_takes_two_words_only(tree: Path) -> None:
    with pytest.raises(ValueError, match="policy"):
        Roots(tree, outside="allow")  # pyright: ignore[reportArgumentType]  (the mistake under test)


def test_a_name_that_is_not_utf8_is_shown_escaped_and_taken_back(tree: Path) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9")).mkdir()
    Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9/\xff.txt")).write_text("odd")
    roots = Roots(tree)
    found = roots.resolve("caf\\xe9/\\xff.txt")
    assert Path(found.real).read_text() == "odd"
    assert found.subject == "caf\\xe9/\\xff.txt"
    assert roots.resolve("caf\\xe9/new.txt").real.encode("utf-8", "surrogateescape").endswith(b"caf\xe9/new.txt")


def test_the_literal_spelling_wins_where_it_exists(tree: Path) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff.txt")).write_text("bytes")
    (tree / "\\xff.txt").write_text("literal")
    assert Path(Roots(tree).resolve("\\xff.txt").real).read_text() == "literal"


def test_an_escape_cannot_spell_its_way_out(tree: Path) -> None:
    for path in ("\\x2e\\x2e/workspace-secrets/secret.txt", "out\\x2fsecret.txt", "\\x2e\\x2e"):
        assert Roots(tree).resolve(path).inside


PARTS = st.sampled_from(
    ["..", ".", "", "sub", "a.txt", "to_sub", "to_a", "out", "out_file", "dangling_in", "dangling_out", "back_in",
     "loop_a", "self", "up", "missing", "workspace", "workspace-secrets", "secret.txt", "\\xff", "~"]
)  # fmt: skip


def joined(parts: list[str], lead: str) -> str:
    return lead + "/".join(parts)


LEADS = st.sampled_from(["", "/", "./", "../"])
PATHS = st.builds(joined, st.lists(PARTS, max_size=6), LEADS) | st.text(string.printable, max_size=30)


def test_for_any_path_judged_and_opened_agree_and_nothing_outside_opens(tree: Path) -> None:
    roots = Roots(tree)

    @given(PATHS)
    def check(path: str) -> None:
        try:
            judged = roots.resolve(path)
            opened = open_judged(roots, path)
        except ToolError as e:
            named_outside = "workspace-secrets" in e.message + e.hint
            assert not named_outside or "workspace-secrets" in path
            return
        with opened:
            assert judged.inside
            assert (opened.path.real, opened.path.subject) == (judged.real, judged.subject)
            with suppress(
                FileNotFoundError, NotADirectoryError
            ):  # `..` behind a file or what is missing: refused there
                assert os.path.samestat(os.stat(os.path.join(tree, path)), opened.stat)

    check()


def test_as_many_links_as_the_kernel_follows_are_followed_and_no_more(workspace: Path) -> None:
    (workspace / "link0").write_text("end")
    for number in range(1, 43):
        (workspace / f"link{number}").symlink_to(f"link{number - 1}")
    assert (workspace / "link40").read_text() == "end", "control: the kernel follows forty"
    with pytest.raises(OSError, match="symbolic links"):
        (workspace / "link41").read_text()
    roots = Roots(workspace)
    assert roots.locate("link40").real == os.fspath(workspace.resolve() / "link0")
    assert roots.locate("link41").real != os.fspath(workspace.resolve() / "link0")


def test_the_refusal_of_a_home_folder_names_the_rest_of_the_path(workspace: Path) -> None:
    for path, tried in (("~/a/b", "'a/b'"), ("~", "'.'"), ("~/", "'.'"), ("~//x", "'x'")):
        with pytest.raises(ToolError) as refused:
            Roots(workspace).resolve(path)
        assert f"try {tried}, or" in refused.value.hint


def test_a_path_as_long_as_the_system_takes_is_taken(workspace: Path) -> None:
    longest = "/" + "/".join(["a" * 255] * 15 + ["b" * 255])
    assert len(longest) == 4096
    assert Roots(workspace, outside="policy").locate(longest).real == longest
    with pytest.raises(ToolError, match="4,097 bytes"):
        Roots(workspace).locate(longest[:-2] + "/cc")


def test_what_was_opened_lies_where_it_lies(workspace: Path) -> None:
    real = os.fspath(workspace.resolve() / "x")
    assert Roots(workspace).resolved(real).absolute == real


def test_an_escape_stands_for_bytes_only_where_a_file_of_those_exists(workspace: Path) -> None:
    place = os.fsencode(workspace.resolve()) + b"/b\xff"
    roots = Roots(workspace)
    assert roots.locate("b\\xff").real == os.fspath(workspace.resolve() / "b\\xff")
    with open(place, "wb"):
        pass
    assert os.fsencode(roots.locate("b\\xff").real) == place


def test_an_escape_is_never_a_step_up(workspace: Path) -> None:
    assert Roots(workspace).locate("\\x2e\\x2e/x").real == os.fspath(workspace.resolve() / "\\x2e\\x2e" / "x")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("out/secret.txt", "through a link"),
        ("sub/../out/secret.txt", "through a link"),
        ("{root}/out/secret.txt", "through a link"),
        ("../workspace-secrets/secret.txt", "is outside the root"),
        ("sub/../../workspace-secrets/secret.txt", "is outside the root"),
        ("/etc/passwd", "is outside the root"),
    ],
)
def test_a_refusal_tells_a_link_from_a_path_that_is_spelled_outside(tree: Path, path: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        Roots(tree).resolve(path.format(root=tree))
    assert says in caught.value.message
    assert ("try" in caught.value.hint) == (says == "is outside the root")


def test_roots_tell_what_they_were_given(tree: Path) -> None:
    roots = Roots(tree, [tree / "sub"], "policy")
    assert roots.roots == (os.fspath(tree), os.fspath(tree / "sub"))
    assert roots.outside == "policy"


def test_a_path_that_is_too_long_only_below_its_root_is_named(tree: Path) -> None:
    path = "a/" * 2040 + "a"
    assert len(path) < 4096 < len(os.fspath(tree / path))
    with pytest.raises(ToolError) as caught:
        Roots(tree).resolve(path)
    assert caught.value.code == "invalid_arguments"
    assert "4,096" in caught.value.message


def test_what_is_hidden_is_refused_under_every_spelling_and_through_a_link_that_came_later(tree: Path) -> None:
    later = tree.parent / "later"
    roots = Roots(tree, hidden=[os.fspath(tree / "missing"), os.fspath(later)])
    assert roots.resolve("to_sub/a.txt").subject == "sub/a.txt"
    assert roots.hidden() == {os.fspath(tree / "missing"), os.fspath(later)}
    later.symlink_to(tree / "sub")
    for path in ("missing", "missing/new.txt", "dangling_in", "sub", "sub/a.txt", "to_sub/a.txt", "to_a"):
        with pytest.raises(ToolError) as caught:
            roots.resolve(path)
        assert caught.value.code == "access_denied"
        assert "hidden by the sandbox" in caught.value.message
        assert "no setting" in caught.value.hint
    assert roots.resolve("a.txt").inside
    with pytest.raises(ToolError):
        open_judged(roots, "sub/a.txt")
