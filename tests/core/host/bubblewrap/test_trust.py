"""Which entries are trust inputs on the disk, and where they lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit_core.host.bubblewrap.trust import Survey, plain, survey
from toolkit_core.trust_inputs import TRUST_INPUTS, trust_input


def present(root: Path) -> set[str]:
    return {os.path.relpath(path, root) for path in survey(str(root)).present}


def absent(root: Path) -> set[str]:
    return {os.path.relpath(path, root) for path in survey(str(root)).absent}


def test_the_public_list_names_the_configuration_of_git_agents_editors_and_shells() -> None:
    assert {".git", "AGENTS.md", "CLAUDE.md", ".mcp.json", ".vscode", ".idea", ".envrc", ".bashrc"} <= set(TRUST_INPUTS)
    assert len(set(TRUST_INPUTS)) == len(TRUST_INPUTS)
    assert not any("/" in name for name in TRUST_INPUTS)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/hooks/x", ".git"),
        ("./.git", ".git"),
        ("AGENTS.md", "AGENTS.md"),
        ("docs/AGENTS.md", None),
        (".gitignore", None),
        ("", None),
    ],
)
def test_a_relative_path_is_judged_by_its_first_part(path: str, expected: str | None) -> None:
    assert trust_input(path) == expected


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("hi")
    assert present(tmp_path) == {".git", "AGENTS.md"}
    assert absent(tmp_path) == set(TRUST_INPUTS) - {".git", "AGENTS.md"}


def test_a_git_file_protects_the_folder_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "gd").mkdir()
    (tmp_path / ".git").write_text("gitdir: gd\n")
    assert present(tmp_path) == {".git", "gd"}


def test_a_git_file_protects_a_folder_that_is_yet_to_come(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: sub/gd\n")
    assert "sub/gd" in absent(tmp_path)


def test_a_worktree_inside_protects_the_common_folder_too(tmp_path: Path) -> None:
    (tmp_path / "main" / "worktrees" / "wt").mkdir(parents=True)
    (tmp_path / "main" / "worktrees" / "wt" / "commondir").write_text("../..\n")
    (tmp_path / ".git").write_text("gitdir: main/worktrees/wt\n")
    assert present(tmp_path) == {".git", "main", "main/worktrees/wt"}


@pytest.mark.parametrize("pointer", ["/etc", "/", "..", ".", "", "x\0y", "a" * 5000, "~root/x"])
def test_a_forged_pointer_adds_nothing_outside_and_never_the_root(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(f"gitdir: {pointer}\n")
    found = survey(str(tmp_path))
    assert {os.path.relpath(path, tmp_path) for path in found.present} == {".git"}
    assert all(path.startswith(f"{tmp_path}/") for path in found.absent)


def test_a_git_that_is_a_fifo_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert present(tmp_path) == {".git"}


def test_hooks_kept_in_the_tree_are_protected(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text('[core]\n\thooksPath = "tools/hooks"\n')
    (tmp_path / "tools" / "hooks").mkdir(parents=True)
    assert present(tmp_path) == {".git", "tools/hooks"}


def test_the_target_of_a_link_inside_is_protected_and_the_link_remembered(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / ".mcp.json").symlink_to("real.json")
    (tmp_path / ".claude").symlink_to("later")
    found = survey(str(tmp_path))
    assert {os.path.basename(path): text for path, text in found.links.items()} == {
        ".mcp.json": "real.json",
        ".claude": "later",
    }
    assert present(tmp_path) == {"real.json"}
    assert "later" in absent(tmp_path)


def test_a_link_inside_a_trust_folder_protects_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "hooks").mkdir()
    (tmp_path / ".git" / "hooks").symlink_to("../hooks")
    assert present(tmp_path) == {".git", "hooks"}


def test_a_root_that_is_a_repository_itself_protects_its_parts(tmp_path: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (tmp_path / name).mkdir()
    for name in ("HEAD", "config"):
        (tmp_path / name).write_text("")
    assert present(tmp_path) == {"HEAD", "config", "hooks", "objects", "refs"}
    assert "commondir" in absent(tmp_path)


def test_a_survey_survives_being_written_down(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".envrc").symlink_to("x")
    found = survey(str(tmp_path))
    assert Survey.from_json(found.to_json()) == found


def test_plain_refuses_links_and_second_names_at_any_depth(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "hooks" / "pre-commit").write_text("x")
    assert plain([str(git)])
    os.link(git / "hooks" / "pre-commit", tmp_path / "alias")
    assert not plain([str(git)])
    (tmp_path / "alias").unlink()
    assert plain([str(git)])
    (git / "info").symlink_to("/etc")
    assert not plain([str(git)])


def test_plain_takes_the_hard_links_that_a_local_clone_makes_of_objects(tmp_path: Path) -> None:
    objects = tmp_path / ".git" / "objects"
    objects.mkdir(parents=True)
    (objects / "ab").write_text("x")
    os.link(objects / "ab", tmp_path / "other")
    assert plain([str(tmp_path / ".git")])
    assert plain([])
    assert plain([str(tmp_path / "missing")])
