"""What a .gitignore says, compared with git and with ripgrep."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import require, soak
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.ignore_rules import IgnoreRules, IgnoreScope, parse_rule

_NAMES = ["a", "b", "ab", "a.py", "b.log", "foo", "foo.tmp", "x y", "!z", "#h", "build", "é"]
_PARTS = [
    *("a", "b", "ab", "*", "**", "*.py", "*.log", "foo", "f*", "[ab]", "[!a]", "a*", "*o*", "build", "foo.*"),
    *("[a-f]oo", r"\!z", r"\#h", "x y", "é", r"x\ y"),
]


@pytest.mark.parametrize(
    ("lines", "path", "folder", "expected"),
    [
        ("dist/", "dist", True, True),
        ("dist/", "dist", False, None),
        ("dist/*", "dist/app.js", False, True),
        ("/dist", "x/dist", True, None),
        ("*.log\n!keep.log", "x/keep.log", False, False),
        ("a/**/z", "a/z", False, True),
        ("**/z", "a/b/z", False, True),
        ("z/**", "z/a/b", False, True),
        ("z/**", "z", True, None),
        ("*.py[cod]", "x/m.pyc", False, True),
        ("# no\n\\#yes", "#yes", False, True),
        ("trailing   ", "trailing", False, True),
        ("crlf\r", "crlf", False, True),
        ("{a,b}", "a", False, None),
        ("[", "[", False, None),
        ("?", "é", False, None),
        ("[[:digit:]]x", "1x", False, True),
        ("\ufeffbom", "bom", False, True),
    ],
)
def test_a_rule_means_what_gitignore_says(lines: str, path: str, folder: bool, expected: bool | None) -> None:
    rules = IgnoreRules.parse(lines.encode())
    assert rules.verdict(path, path.rpartition("/")[2], folder=folder) is expected


def test_a_nearer_file_beats_a_farther_one() -> None:
    outer = IgnoreScope(IgnoreRules.parse(b"*.log\n"), 0)
    inner = IgnoreScope(IgnoreRules.parse(b"!a.log\n"), len("x/"), outer)
    assert inner.ignores("x/b.log", "b.log", folder=False)
    assert not inner.ignores("x/a.log", "a.log", folder=False)


def test_the_quick_test_never_clears_what_a_rule_fits() -> None:
    rules = IgnoreRules.parse(b"*.log\nbuild/\n/docs/_out\n*.py[cod]\nx/y/z\n")
    for path in ("a.log", "build", "docs/_out", "m.pyc", "x/y/z", "q/build"):
        name = path.rpartition("/")[2]
        assert rules.suspects(path[: len(path) - len(name)])(name), path
    assert not rules.suspects("docs/")("index.md")


@pytest.mark.parametrize("line", ["", "#x", "!", "/", "a\\", "[ab"])
def test_a_line_that_cannot_match_is_no_rule(line: str) -> None:
    assert parse_rule(line) is None


def _tree(root: Path, chance: random.Random) -> None:
    for _ in range(25):
        path = root.joinpath(*(chance.choice(_NAMES) for _ in range(chance.randint(1, 4))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if chance.random() < 0.3 else path.touch()
        except OSError:
            continue


def _pattern(chance: random.Random) -> str:
    text = "/".join(chance.choice(_PARTS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))
    text = ("/" if chance.random() < 0.25 else "") + text + ("/" if chance.random() < 0.25 else "")
    return ("!" if chance.random() < 0.2 else "") + text


def _visible(root: Path, rules: IgnoreRules, folder: str = "") -> Iterator[tuple[str, bool]]:
    for name in sorted(os.listdir(root / folder)):
        path = folder + name
        if path in (".git", ".gitignore"):
            continue
        is_folder = (root / path).is_dir()
        ignored = bool(rules.verdict(path, name, folder=is_folder))
        yield path, ignored
        if is_folder and not ignored:
            yield from _visible(root, rules, path + "/")


def _git_ignores(root: Path, paths: list[str]) -> set[str]:
    command = ["git", "-C", str(root), "check-ignore", "-z", "--no-index", "--stdin"]
    run = subprocess.run(command, input="\0".join(paths).encode(), capture_output=True, check=False)
    return {path for path in run.stdout.decode().split("\0") if path}


def _ripgrep_lists(program: str, root: Path) -> set[str]:
    options = ["--no-config", "--files", "-0", "--hidden", "--no-require-git", "--no-ignore-global", "-g!.git"]
    options += ["--no-ignore-parent", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-messages"]
    run = subprocess.run([program, *options], cwd=root, capture_output=True, check=False)
    return {path for path in run.stdout.decode().split("\0") if path} - {".gitignore"}


def test_the_rules_agree_with_git_and_with_ripgrep_on_random_trees(tmp_path: Path) -> None:
    program = find_ripgrep()
    require(shutil.which("git") and program, "git and ripgrep")
    assert program is not None
    chance = random.Random(11)
    for number in range(soak(400)):
        root = tmp_path / str(number)
        root.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        _tree(root, chance)
        lines = [_pattern(chance) for _ in range(chance.randint(1, 6))]
        (root / ".gitignore").write_text("\n".join(lines) + "\n")
        rules = IgnoreRules.parse((root / ".gitignore").read_bytes())
        seen = dict(_visible(root, rules))
        assert {path for path, ignored in seen.items() if ignored} == _git_ignores(root, list(seen)), lines
        if any(line.startswith("!") for line in lines):
            continue  # ripgrep lets `!**/` and the like open what an outer rule closed; git does not
        files = {path for path, ignored in seen.items() if not ignored and (root / path).is_file()}
        assert files == _ripgrep_lists(program, root), lines
