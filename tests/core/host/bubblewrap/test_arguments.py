"""What bubblewrap is told, without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.host.bubblewrap.arguments import Layout, build, outermost, pins, within

FILTER = b"\x06\0\0\0\0\0\xff\x7f"


def options(layout: Layout) -> list[str]:
    return build(layout, filter_program=FILTER)[0].decode().split("\0")[:-1]


def mounts(layout: Layout, kind: str) -> list[str]:
    words = options(layout)
    return [words[i + 2] for i, word in enumerate(words) if word == kind]


def test_the_whole_list_for_a_plain_workspace(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    workspace, git = str(tmp_path), str(tmp_path / ".git")
    words = options(Layout(writable=(workspace,), working_directory=workspace, read_only=(git,)))
    kernel = [word for word in words if word.startswith("/proc/")]
    assert words[:15] == [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--unshare-net",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/",
        "/",
        "--dev",
    ]
    assert kernel[:2] == ["/proc/sys", "/proc/sys"]
    assert "--size 1073741824 --tmpfs /tmp" in " ".join(words)
    assert words[-14:] == [
        *["--bind", workspace, workspace],
        *["--ro-bind-try", git, git],
        *["--remount-ro", "/run"],
        *["--chdir", workspace],
        *["--seccomp", "4", "--json-status-fd", "5"],
    ]


def test_network_is_the_only_namespace_that_can_be_shared(tmp_path: Path) -> None:
    off = Layout(writable=(str(tmp_path),), working_directory=str(tmp_path))
    on = Layout(writable=(str(tmp_path),), working_directory=str(tmp_path), network=True)
    assert set(options(off)) - set(options(on)) == {"--unshare-net"}
    assert "--seccomp" in options(on)


def test_no_arguments_are_built_without_a_filter(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="filter"):
        build(Layout(writable=(str(tmp_path),), working_directory=str(tmp_path)), filter_program=b"")


def test_read_only_lies_over_writable_and_hidden_over_both(tmp_path: Path) -> None:
    inner = tmp_path / ".git" / "secret"
    inner.mkdir(parents=True)
    words = options(
        Layout(
            writable=(str(tmp_path), str(tmp_path / ".git")),
            working_directory=str(tmp_path),
            read_only=(str(tmp_path / ".git"),),
            hidden=(str(inner),),
        )
    )
    places = [words.index(option) for option in ("--bind", "--ro-bind-try")]
    assert places == sorted(places) < [words.index(str(inner))]
    assert words[words.index(str(inner)) - 3 : words.index(str(inner)) + 3] == [
        *["--perms", "0000", "--tmpfs", str(inner)],
        *["--remount-ro", str(inner)],
    ]


def test_a_hidden_file_is_covered_by_an_empty_one_of_its_own(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text("secret")
    arguments, descriptors = build(
        Layout(writable=(), working_directory="/", hidden=tuple(str(file) for file in files)), filter_program=FILTER
    )
    assert {number: content for number, content in descriptors.items() if number >= 7} == {7: b"", 8: b""}
    assert b"--perms\x000000\x00--ro-bind-data\x008\x00" + str(files[1]).encode() in arguments


def test_folders_on_the_way_to_a_mount_are_pinned(tmp_path: Path) -> None:
    workspace = str(tmp_path)
    layout = Layout(
        writable=(workspace, f"{workspace}/x/y"),
        working_directory=workspace,
        read_only=(f"{workspace}/.git", f"{workspace}/sub/deep/hooks"),
        hidden=(f"{workspace}/a/key", "/elsewhere/b/key"),
    )
    assert pins(layout) == [f"{workspace}/{name}" for name in ("a", "sub", "x", "sub/deep")]
    order = [path for path in mounts(layout, "--bind") if path.startswith(workspace)]
    assert order.index(f"{workspace}/x") < order.index(f"{workspace}/x/y")


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))))
def test_outermost_keeps_exactly_what_covers_the_rest(paths: list[str]) -> None:
    kept = outermost(paths)
    assert set(kept) <= set(paths)
    assert all(sum(within(path, folder) for folder in kept) == 1 for path in paths)


def test_within_compares_whole_components() -> None:
    assert within("/a/b", "/a")
    assert within("/a", "/a")
    assert within("/a", "/")
    assert not within("/ab", "/a")
