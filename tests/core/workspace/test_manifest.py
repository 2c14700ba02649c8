"""Workspace manifests: refused whole or applied entry by entry."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.core.sandboxes.planes import FolderPlane
from toolkit_core import HostFiles, InMemorySandbox, ToolError, WorkspaceManifest, apply_manifest
from toolkit_core.workspace.judging import check_git_ref, check_git_url, normal_path


def git(url: str, ref: str | None = None) -> dict[str, Any]:
    return {"type": "git_repo", "url": url, **({} if ref is None else {"ref": ref})}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "origin"
    made.mkdir()
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    (made / "README").write_text("from git\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-qm", "one"], ["branch", "topic"]):
        subprocess.run(["git", "-C", str(made), *words], check=True)
    return made


async def test_control_a_ref_that_is_an_option_runs_a_command(repository: Path, tmp_path: Path) -> None:
    evil = f"--upload-pack=touch {tmp_path}/marker;git-upload-pack"
    subprocess.run(["git", "clone", "-q", evil, f"file://{repository}", str(tmp_path / "c")], check=False)
    assert (tmp_path / "marker").exists(), "CONTROL: as an option it runs"


@pytest.mark.parametrize(
    "entry",
    [
        git("file://{repo}", "--upload-pack=touch {dir}/marker;git-upload-pack"),
        git("--upload-pack=touch {dir}/marker"),
        git("ext::sh -c touch% {dir}/marker"),
        git("-u./y"),
        git("file:///etc"),
        git("https://host/r.git", "-b"),
        git("https://host/r.git", "a..b"),
        git("https://user:secret@host/r.git"),
        git("git://host/r.git"),
        git("http://host/r.git"),
        git("https://-oProxyCommand=touch/r"),
        git("ssh://-oProxyCommand=touch%20x/r"),
        git("-oProxyCommand=x@host:r"),
        git("fd::17"),
        git("ext::https://host"),
        git("https://host/a b"),
        git("https://host/\n--upload-pack=x"),
        git("/etc"),
        git("relative/path"),
        {"type": "local_file", "source": "a"},
        {"type": "local_dir", "source": "."},
        {"type": "file", "content": "!!", "encoding": "base64"},
        {"type": "file", "content": "\ud800"},
    ],
)
async def test_one_bad_entry_refuses_all_before_the_first(
    entry: dict[str, Any], repository: Path, tmp_path: Path
) -> None:
    entry = {
        k: v.format(repo=repository, dir=tmp_path) if isinstance(v, str) and "{" in v else v for k, v in entry.items()
    }
    work = tmp_path / "w"
    work.mkdir()
    client = FolderPlane(work)
    entries = {"first.txt": {"type": "file", "content": "x"}, "r": entry, "last": {"type": "dir"}}
    with pytest.raises(ToolError, match="nothing was applied"):
        await apply_manifest(client, {"entries": entries}, target_root=str(work))
    assert list(work.iterdir()) == []
    assert client.commands == []
    assert not (tmp_path / "marker").exists()


BAD_PATHS = [
    "",
    ".",
    "./",
    "a/..",
    "../x",
    "a/../../x",
    "/abs",
    "\\abs",
    "C:\\x",
    "c:x",
    "..\\x",
    "a\0b",
    "x" * 300,
    "\ud800",
]


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_bad_paths_are_refused(path: str) -> None:
    memory = InMemorySandbox()
    with pytest.raises(ToolError) as caught:
        await apply_manifest(memory, {"entries": {"ok.txt": {"type": "file", "content": ""}, path: {"type": "dir"}}})
    assert caught.value.code == "invalid_arguments"
    assert memory.files == {}


async def test_all_problems_are_told_at_once() -> None:
    entries = {"../a": {"type": "dir"}, "b": git("ext::x"), "c": {"type": "local_file", "source": "x"}}
    manifest = {"entries": entries, "environment": {"A": "1"}, "permissions": {"read": ["x"]}}
    with pytest.raises(ToolError) as caught:
        await apply_manifest(InMemorySandbox(), manifest)
    for word in ("environment", "permissions", "../a", "helper transport", "host_files"):
        assert word in caught.value.message


@pytest.mark.parametrize("value", [{"A": "1"}, {"A": ""}, {"A": None}, {"A": False}, {"A": {}}, {"A": [], "B": 0}])
async def test_a_control_that_nothing_enforces_refuses_it_all(value: dict[str, Any]) -> None:
    for name in ("environment", "permissions"):
        memory = InMemorySandbox()
        with pytest.raises(ToolError, match=name):
            await apply_manifest(memory, {"entries": {"a": {"type": "file", "content": ""}}, name: value})
        assert memory.files == {}


async def test_what_asks_nothing_is_fine() -> None:
    manifest: dict[str, Any] = {
        "entries": {"a": {"type": "file", "content": "x"}},
        "environment": None,
        "permissions": {"read": []},
    }
    assert (await apply_manifest(InMemorySandbox(), manifest)).complete


async def test_files_and_folders_are_laid_out_and_a_second_time_changes_nothing() -> None:
    memory = InMemorySandbox()
    entries = {
        "./a//b/./c.txt": {"type": "file", "content": "text"},
        "bytes": {"type": "file", "content": "AP8=", "encoding": "base64"},
        "empty": {"type": "dir"},
    }
    first = await apply_manifest(memory, {"entries": entries}, target_root="/plane///space/")
    assert memory.files == {"/plane/space/a/b/c.txt": b"text", "/plane/space/bytes": b"\0\xff"}
    assert [entry.status for entry in first.entries] == ["applied"] * 3
    second = await apply_manifest(memory, {"entries": entries}, target_root="/plane/space")
    assert [entry.status for entry in second.entries] == ["unchanged"] * 3
    assert second.complete


async def test_local_entries_come_through_the_port_and_stay_in_its_root(tmp_path: Path) -> None:
    source, work = tmp_path / "source", tmp_path / "work"
    (source / "pkg" / "deep").mkdir(parents=True)
    work.mkdir()
    (source / "pkg" / "run.sh").write_text("#!/bin/sh\n")
    (source / "pkg" / "run.sh").chmod(0o755)
    (source / "pkg" / "deep" / "it's.txt").write_bytes(b"\xff\0")
    (source / "secret").symlink_to("/etc/hostname")
    entries = {"lib": {"type": "local_dir", "source": "pkg"}, "one": {"type": "local_file", "source": "pkg/run.sh"}}
    files = HostFiles(source)
    client = FolderPlane(work)
    result = await apply_manifest(client, {"entries": entries}, host_files=files, target_root=str(work))
    assert result.complete, result
    assert (work / "lib" / "deep" / "it's.txt").read_bytes() == b"\xff\0"
    assert (work / "lib" / "run.sh").stat().st_mode & 0o111
    for escape in ("/etc/hostname", "../x", "secret"):
        entries = {"x": {"type": "local_file", "source": escape}, "y": {"type": "dir"}}
        result = await apply_manifest(client, {"entries": entries}, host_files=files, target_root=str(work))
        assert [entry.status for entry in result.entries] == ["failed", "not_applied"]
        assert not (work / "x").exists()


async def test_a_repository_is_cloned_by_an_argument_vector(repository: Path, tmp_path: Path) -> None:
    work = tmp_path / "it's work"
    work.mkdir()
    client = FolderPlane(work)
    manifest = {
        "entries": {"deep/repo": git(f"file://{repository}", "topic"), "after.txt": {"type": "file", "content": ""}}
    }
    options: dict[str, Any] = {"target_root": str(work), "allow_file_urls": True}
    first = await apply_manifest(client, manifest, **options)
    assert first.complete, first
    assert (work / "deep" / "repo" / "README").read_text() == "from git\n"
    clone = next(command for command in client.commands if "git clone" in command)
    assert 'git clone --quiet --no-recurse-submodules --depth 1 --branch topic -- "$u" "$t"' in clone
    assert "GIT_ALLOW_PROTOCOL=https:ssh:file" in clone
    second = await apply_manifest(client, manifest, **options)
    assert [entry.status for entry in second.entries] == ["unchanged", "unchanged"]
    other = {"entries": {"deep/repo": git(f"file://{repository}", "main")}}
    third = await apply_manifest(client, other, **options)
    assert third.entries[0].status == "failed"
    assert "something else" in third.entries[0].message


async def test_a_fault_is_told_by_entry_and_the_next_time_goes_on(repository: Path, tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir()
    client = FolderPlane(work)
    missing = tmp_path / "not-yet"
    entries = {
        "a.txt": {"type": "file", "content": "a"},
        "r": git(f"file://{missing}"),
        "b.txt": {"type": "file", "content": "b"},
    }
    options: dict[str, Any] = {"target_root": str(work), "allow_file_urls": True}
    first = await apply_manifest(client, {"entries": entries}, **options)
    assert [entry.status for entry in first.entries] == ["applied", "failed", "not_applied"]
    assert sorted(path.name for path in work.iterdir()) == ["a.txt"], "nothing half-built"
    repository.rename(missing)
    second = await apply_manifest(client, {"entries": entries}, **options)
    assert [entry.status for entry in second.entries] == ["unchanged", "applied", "applied"]


async def test_a_clone_cut_short_leaves_nothing_and_is_done_anew(repository: Path, tmp_path: Path) -> None:
    work = tmp_path / "w"
    (work / "r.toolkit-partial").mkdir(parents=True)
    (work / "r.toolkit-partial" / "junk").write_text("left by a clone that died")
    result = await apply_manifest(
        FolderPlane(work), {"entries": {"r": git(f"file://{repository}")}}, target_root=str(work), allow_file_urls=True
    )
    assert result.complete, result
    assert [path.name for path in work.iterdir()] == ["r"]


async def test_mounts_are_unsupported_unless_the_sandbox_mounts() -> None:
    entries = {
        "s": {"type": "s3", "bucket": "b", "region": "r"},
        "g": {"type": "gcs", "bucket": "b"},
        "r": {"type": "r2", "bucket": "b", "account_id": "a"},
        "z": {"type": "azure", "container": "c", "account": "a"},
        "f": {"type": "file", "content": "x"},
    }
    memory = InMemorySandbox()
    result = await apply_manifest(memory, {"entries": entries})
    assert [entry.status for entry in result.entries] == ["unsupported"] * 4 + ["applied"]
    assert not result.complete

    class Mounting(InMemorySandbox):
        async def mount(self, entry: Any, target: str) -> None:
            mounted.append((entry["type"], target))

    mounted: list[tuple[str, str]] = []
    assert (await apply_manifest(Mounting(), {"entries": entries})).complete
    assert mounted[0] == ("s3", "/workspace/s")


async def test_two_entries_for_one_place_and_one_below_a_file_are_refused() -> None:
    for entries in (
        {"a": {"type": "dir"}, "./a": {"type": "dir"}},
        {"a": {"type": "file", "content": ""}, "a/b": {"type": "dir"}},
    ):
        with pytest.raises(ToolError, match="nothing was applied"):
            await apply_manifest(InMemorySandbox(), {"entries": entries})


def test_what_is_no_manifest_is_no_manifest() -> None:
    for bad in ({"entries": {"a": {"type": "file"}}}, {"entries": {"a": {"type": "magic"}}}, {"more": 1}):
        with pytest.raises(ValidationError):
            WorkspaceManifest.model_validate(bad)


def test_a_hundred_thousand_separators_take_no_time() -> None:
    started = time.monotonic()
    assert normal_path("a" + "/" * 100_000 + "b") == "a/b"
    assert normal_path("./" * 100_000 + "b") == "b"
    asyncio.run(apply_manifest(InMemorySandbox(), {}, target_root="/" * 100_001 + "w"))
    for url in ("https://" + "/" * 100_000, "a" * 100_000 + ":", ":" * 100_000, "a@" * 50_000):
        with pytest.raises(ValueError):  # noqa: PT011 - which one does not matter here
            check_git_url(url)
    assert time.monotonic() - started < 5


async def test_a_relative_target_root_is_refused() -> None:
    for root in ("", "work", "./w", "/a/../b", "/a\0"):
        with pytest.raises(ToolError):
            await apply_manifest(InMemorySandbox(), {}, target_root=root)


@given(st.text())
def test_a_path_that_passes_stays_in_the_workspace(path: str) -> None:
    try:
        normal = normal_path(path)
    except ValueError:
        return
    parts = normal.split("/")
    assert parts
    assert not {"", ".", ".."} & set(parts)
    assert "\0" not in normal


@given(st.text(max_size=40))
def test_a_ref_that_passes_is_no_option_and_one_word(ref: str) -> None:
    try:
        check_git_ref(ref)
    except ValueError:
        return
    assert ref
    assert not ref.startswith("-")
    assert not set(ref) & set(" \t\n\0~^:?*[\\")


def test_the_good_urls_pass() -> None:
    for url in ("https://host/a/b.git", "ssh://git@host:22/a", "git@host.example:a/b.git", "host:path", "HTTPS://h/a"):
        check_git_url(url)
