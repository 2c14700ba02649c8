"""Nothing outside the roots is listed, read or named by a search; each guard after a proof of its danger."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import require, soak
from toolkit_core.errors import ToolError
from toolkit_core.host._native.confined_reads import landlock_version
from toolkit_core.host.resolve import Roots
from toolkit_core.host.ripgrep import Ripgrep, find_ripgrep, grep_options
from toolkit_core.host.search import HostSearch, open_place
from toolkit_core.host.search_place import Judge
from toolkit_core.host.stoppable import Stop
from toolkit_core.ports.search import GlobQuery, GrepQuery

SECRET = "SECRET_OUTSIDE_41"


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """ws (the root) beside outside, with links that lead out."""
    outside, root = tmp_path / "outside", tmp_path / "ws"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET + "\n")
    (root / "d").mkdir(parents=True)
    (root / "d" / "plain.txt").write_text("plain\n")
    (root / "dirlink").symlink_to(outside)
    (root / "filelink").symlink_to(outside / "secret.txt")
    (root / "d" / "up").symlink_to("../../outside")
    (tmp_path / "ws-sibling").mkdir()
    (tmp_path / "ws-sibling" / "s.txt").write_text(SECRET + "\n")
    return root


def test_control_a_program_that_follows_links_reads_the_secret(scene: Path) -> None:
    program = find_ripgrep()
    require(program, "ripgrep")
    assert program is not None
    for argument in ("dirlink", "filelink", "../outside", "../ws-sibling"):
        run = subprocess.run([program, SECRET, argument], cwd=scene, capture_output=True, check=False)
        assert SECRET.encode() in run.stdout, argument


@pytest.mark.parametrize(
    "path",
    ["dirlink", "filelink", "d/up", "d/up/secret.txt", "dirlink/secret.txt", "../outside", "..", "/", "../ws-sibling"],
)
@pytest.mark.parametrize("look", ["", "(?=)"])
async def test_a_path_that_leads_out_is_refused_and_names_nothing_there(scene: Path, path: str, look: str) -> None:
    search = HostSearch(scene)
    for attempt in (search.grep(GrepQuery(look + SECRET, path=path)), search.glob(GlobQuery("**/*", path=path))):
        with pytest.raises(ToolError) as caught:
            await attempt
        assert caught.value.code == "access_denied"
        text = caught.value.info.text + caught.value.detail
        assert "secret.txt" not in text.replace(path, "")
        assert SECRET not in text


@pytest.mark.parametrize("look", ["", "(?=)"])
async def test_a_search_of_the_root_finds_nothing_outside(scene: Path, look: str) -> None:
    search = HostSearch(scene)
    for query in (
        GrepQuery(look + SECRET),
        GrepQuery(look + SECRET, glob="dirlink/**"),
        GrepQuery(look + SECRET, include_ignored=True, mode="files_with_matches"),
    ):
        found = await search.grep(query)
        assert not found.rows
        assert not found.counts
    listed = (await search.glob(GlobQuery("**/*", include_ignored=True))).paths
    assert listed == ("d/", "d/plain.txt", "d/up", "dirlink", "filelink")


async def test_a_root_that_is_reached_through_a_link_works(scene: Path) -> None:
    (scene.parent / "rootlink").symlink_to(scene)
    search = HostSearch(scene.parent / "rootlink")
    assert [row.path for row in (await search.grep(GrepQuery("plain"))).rows] == ["d/plain.txt"]
    assert (await search.glob(GlobQuery("d/*.txt"))).paths == ("d/plain.txt",)


async def test_a_relative_path_starts_at_the_root_not_at_the_process_folder(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scene.parent / "outside")
    found = await HostSearch(scene).grep(GrepQuery("plain|SECRET"))
    assert [row.path for row in found.rows] == ["d/plain.txt"]


async def test_a_gitignore_that_is_a_link_outside_is_not_read(scene: Path) -> None:
    (scene.parent / "outside" / "rules").write_text("*.txt\n")
    (scene / ".gitignore").symlink_to("../outside/rules")
    assert (await HostSearch(scene).glob(GlobQuery("d/*.txt"))).paths == ("d/plain.txt",)


def test_landlock_keeps_the_child_from_opening_anything_else(scene: Path) -> None:
    program = find_ripgrep()
    require(program and landlock_version(), "ripgrep and Landlock")
    assert program is not None

    def search(*, confined: bool) -> tuple[bytes, int | None]:
        """As if the folder had been swapped for a link between the check and the start."""
        said: list[bytes] = []
        with open_place(Roots(scene), "d") as place:
            (scene / "d").rename(scene / "d-before")
            (scene / "d").symlink_to("../outside")
            try:
                options = grep_options(GrepQuery(SECRET), (), heed=True, sort=False)
                engine = Ripgrep(program, confined)
                unreadable = engine.run(options, place, (), lambda block: said.append(block) is None, Stop(20))
            finally:
                (scene / "d").unlink()
                (scene / "d-before").rename(scene / "d")
        return b"".join(said), unreadable

    output, _ = search(confined=False)
    assert SECRET.encode() in output  # CONTROL: free, it follows the link that it was given
    output, unreadable = search(confined=True)
    assert output == b""
    assert unreadable


def test_a_reported_file_is_judged_again(scene: Path) -> None:
    (scene / "d" / "gone").write_text("x")
    root = os.open(scene, os.O_RDONLY)
    try:
        with Judge(root) as judge:
            assert judge.is_file("d/plain.txt")
            assert judge.is_file("d/gone")
            (scene / "d" / "gone").unlink()
            (scene / "d" / "gone").symlink_to("../../outside/secret.txt")
            assert not judge.is_file("d/gone")
            assert not judge.is_file("dirlink/secret.txt")
            assert not judge.is_file("d/up/secret.txt")
            assert not judge.is_file("../outside/secret.txt")
            assert not judge.is_file("filelink")
            assert judge.is_file("d/plain.txt")
    finally:
        os.close(root)


_SWAPPER = """
import os, sys
root = sys.argv[1]
os.chdir(root)
print("ready", flush=True)
while True:
    os.rename("swap", "swap-real"); os.symlink("../outside", "swap")
    os.unlink("swap"); os.rename("swap-real", "swap")
    os.rename("swap/f.txt", "swap/f-real"); os.symlink("../../outside/secret.txt", "swap/f.txt")
    os.unlink("swap/f.txt"); os.rename("swap/f-real", "swap/f.txt")
"""


@contextmanager
def swapping(root: Path) -> Generator[None]:
    """Another process swaps a folder and a file for links that lead out, in a tight loop."""
    process = subprocess.Popen([sys.executable, "-c", _SWAPPER, str(root)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


async def test_a_race_with_swapped_links_shows_nothing_outside(scene: Path) -> None:
    require(landlock_version(), "Landlock, without which a swap inside ripgrep's walk remains possible")
    (scene / "swap").mkdir()
    (scene / "swap" / "f.txt").write_text("INSIDE\n")
    search = HostSearch(scene)
    seen = {"inside": 0, "errors": 0, "secret": 0}
    with swapping(scene):
        end = time.monotonic() + soak(20)
        while time.monotonic() < end:
            queries = [
                search.grep(GrepQuery(f"{SECRET}|INSIDE", path=path, include_ignored=True))
                for path in (".", "swap", "swap/f.txt")
            ]
            queries.append(search.grep(GrepQuery(f"(?=){SECRET}|INSIDE")))
            for outcome in await asyncio.gather(*queries, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    assert isinstance(outcome, ToolError), outcome
                    seen["errors"] += 1
                    continue
                seen["inside"] += any("INSIDE" in row.text for row in outcome.rows)
                seen["secret"] += any(SECRET in row.text for row in outcome.rows)
            try:
                listed = (await search.glob(GlobQuery("swap/**/*"))).paths
            except ToolError:
                continue
            assert not [path for path in listed if "secret" in path]
    assert seen["secret"] == 0
    assert seen["inside"] > 0
