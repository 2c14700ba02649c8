"""Applying a manifest to a sandbox: each entry by itself, all of them again without harm."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from toolkit_core.errors import ToolError
from toolkit_core.limits import (
    CLIENT_BLOCK_BYTES,
    CLIENT_FILE_MAX_BYTES,
    CLIENT_PROBE_SECONDS,
    GIT_CLONE_SECONDS,
    MANIFEST_ENTRIES_MAX,
    PLANE_DEFAULT_ROOT,
)
from toolkit_core.ports.sandbox import SupportsMakeFolder, SupportsMount
from toolkit_core.shell_words import assigned
from toolkit_core.text import one_line_name
from toolkit_core.workspace.judging import content_of, judge
from toolkit_core.workspace.manifest import DirEntry, FileEntry, GitRepo, LocalDir, LocalFile, WorkspaceManifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit_core.ports.files import Files, OpenFile
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.workspace.manifest import Entry

Status = Literal["applied", "unchanged", "unsupported", "failed", "not_applied"]

_EXISTS: Final = 64
_OTHER: Final = 65

_CLONE: Final = """\
{path}
u={url} r={ref} t=$p.toolkit-partial
if [ -d "$p/.git" ] && [ "$(git -C "$p" config --get remote.origin.url)" = "$u" ] &&
  [ "$(git -C "$p" config --get toolkit.ref)" = "$r" ]; then exit 64; fi
if [ -e "$p" ] || [ -L "$p" ]; then [ -d "$p" ] && rmdir -- "$p" 2>/dev/null || exit 65; fi
rm -rf -- "$t"; mkdir -p -- "${{p%/*}}/" || exit 1
export GIT_ALLOW_PROTOCOL={protocols} GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true LC_ALL=C
{clone} -- "$u" "$t" && git -C "$t" config toolkit.ref "$r" && mv -- "$t" "$p" || {{ rm -rf -- "$t"; exit 1; }}
"""


@dataclass(frozen=True)
class EntryStatus:
    """What became of one entry.

    Attributes:
        path: As the manifest spells it.
        type: As the manifest spells it.
        status: "applied"; "unchanged": it was there already; "unsupported": the sandbox has no such thing;
            "failed"; "not_applied": an entry before it failed.
        message: Why; "" where there is nothing to say.
    """

    path: str
    type: str
    status: Status
    message: str = ""


@dataclass(frozen=True)
class ManifestResult:
    """What became of a manifest, entry by entry in its order."""

    target_root: str
    entries: tuple[EntryStatus, ...]

    @property
    def complete(self) -> bool:
        """Whether everything is there as it shall be."""
        return all(entry.status in ("applied", "unchanged") for entry in self.entries)


async def apply_manifest(
    client: SandboxClient,
    manifest: WorkspaceManifest | Mapping[str, object],
    *,
    host_files: Files | None = None,
    target_root: str = PLANE_DEFAULT_ROOT,
    allow_file_urls: bool = False,
) -> ManifestResult:
    """Bring a sandbox's workspace into the state that a manifest describes.

    The manifest is judged whole before the first entry is applied. The first entry that fails ends it; the result
    says which, and applying the same manifest again goes on from there: what is in place already is left alone.

    Args:
        client: Where to.
        manifest: The manifest, or a mapping of its form.
        host_files: This machine's files, such as `HostFiles(".")`, for local entries; their sources stay inside.
        target_root: The absolute folder in the sandbox.
        allow_file_urls: Whether repositories may be cloned from paths of the sandbox itself.

    Raises:
        ToolError: `invalid_arguments`: the manifest is refused, and nothing was applied.
        pydantic.ValidationError: The mapping has not the form of a manifest; nothing was applied.

    Example:
        >>> result = await apply_manifest(client, {"entries": {"a.txt": {"type": "file", "content": "hi"}}})
    """
    if not isinstance(manifest, WorkspaceManifest):
        manifest = WorkspaceManifest.model_validate(dict(manifest))
    judged = judge(manifest, target_root, has_host_files=host_files is not None, allow_file_urls=allow_file_urls)
    applicator = _Applicator(client, host_files, allow_file_urls)
    done: list[EntryStatus] = []
    stopped = False
    for spelled, path, entry in judged.entries:
        if stopped:
            done.append(EntryStatus(spelled, entry.type, "not_applied", "an entry before it failed"))
            continue
        try:
            status, message = await applicator.apply(path, entry)
        except ToolError as e:
            status, message = "failed", e.info.text
        stopped = status == "failed"
        done.append(EntryStatus(spelled, entry.type, status, message))
    return ManifestResult(judged.root, tuple(done))


@dataclass(frozen=True)
class _Applicator:
    client: SandboxClient
    host_files: Files | None
    allow_file_urls: bool

    async def apply(self, path: str, entry: Entry) -> tuple[Status, str]:
        """Put one entry in place."""
        if isinstance(entry, FileEntry):
            return await self._file(path, content_of(entry)), ""
        if isinstance(entry, DirEntry):
            return await self._folder(path), ""
        if isinstance(entry, LocalFile):
            return await self._local_file(path, entry.source), ""
        if isinstance(entry, LocalDir):
            return await self._local_folder(path, entry.source), ""
        if isinstance(entry, GitRepo):
            return await self._clone(path, entry)
        if not isinstance(self.client, SupportsMount):
            return "unsupported", f"this sandbox mounts no {entry.type} storage"
        await self.client.mount(entry.model_dump(), path)
        return "applied", ""

    async def _file(self, path: str, content: bytes) -> Status:
        try:
            if await self.client.read_bytes(path) == content:
                return "unchanged"
        except ToolError as e:
            if e.code != "not_found":
                raise
        await self.client.write_bytes(path, content)
        return "applied"

    async def _folder(self, path: str) -> Status:
        if isinstance(self.client, SupportsMakeFolder):
            return "applied" if await self.client.make_folder(path) else "unchanged"
        script = f'{assigned("p", path)}\n[ -d "$p" ] && exit {_EXISTS}\nmkdir -p -- "$p"'
        return await self._run(script, path)

    async def _local_file(self, path: str, source: str) -> Status:
        content, mode = await self._host().read(source, _whole)
        status = await self._file(path, content)
        if mode & 0o100 and status == "applied":
            await self._run(f'{assigned("p", path)}\nchmod +x -- "$p"', path)
        return status

    async def _local_folder(self, path: str, source: str) -> Status:
        """Folders first, then what is in them; a link is read as the file that it leads to."""
        status = await self._folder(path)
        listing = await self._host().list(source, MANIFEST_ENTRIES_MAX)
        if listing.total > len(listing.entries):
            message = (
                f"{one_line_name(source)} has {listing.total:,} entries; at most {MANIFEST_ENTRIES_MAX:,} are taken."
            )
            raise ToolError(message, code="too_large")
        for entry in listing.entries:
            inner, outer = f"{path}/{entry.name}", f"{source.rstrip('/')}/{entry.name}"
            if entry.kind == "directory":
                changed = await self._local_folder(inner, outer)
            elif entry.kind == "other":
                message = f"{one_line_name(outer)} is a special file, which no workspace can hold."
                raise ToolError(message, code="not_a_file")
            else:
                changed = await self._local_file(inner, outer)
            status = "applied" if "applied" in (status, changed) else status
        return status

    async def _clone(self, path: str, repo: GitRepo) -> tuple[Status, str]:
        """Clone beside the place, then rename: a clone that ends early leaves nothing half-built."""
        argv = ["git", "clone", "--quiet", "--no-recurse-submodules", *(["--depth", "1"] if repo.shallow else [])]
        argv += ["--branch", repo.ref] if repo.ref is not None else []
        protocols = "https:ssh:file" if self.allow_file_urls else "https:ssh"
        script = _CLONE.format(
            path=assigned("p", path),
            url=shlex.quote(repo.url),
            ref=shlex.quote(repo.ref or ""),
            protocols=protocols,
            clone=shlex.join(argv),
        )
        result = await self.client.run(script, timeout_seconds=GIT_CLONE_SECONDS)
        said = result.stderr.decode("utf-8", "backslashreplace").strip()
        if result.exit_code == _EXISTS:
            return "unchanged", ""
        if result.exit_code == _OTHER:
            return "failed", f"{one_line_name(path)} holds something else already"
        if result.exit_code != 0:
            how = "did not end in time" if result.timed_out else f"ended with {result.exit_code}"
            return "failed", f"git clone {how}: {said[-2000:]}"
        return "applied", ""

    async def _run(self, script: str, path: str) -> Status:
        result = await self.client.run(script, timeout_seconds=CLIENT_PROBE_SECONDS)
        if result.exit_code == _EXISTS:
            return "unchanged"
        if result.exit_code != 0:
            said = result.stderr.decode("utf-8", "backslashreplace").strip() or f"status {result.exit_code}"
            raise ToolError(f"{one_line_name(path)} cannot be made: {said[-500:]}", code="io_error")
        return "applied"

    def _host(self) -> Files:
        assert self.host_files is not None  # noqa: S101 - judged before
        return self.host_files


def _whole(file: OpenFile) -> tuple[bytes, int]:
    if file.stat.size_bytes > CLIENT_FILE_MAX_BYTES:
        message = f"{one_line_name(file.path.subject)} has {file.stat.size_bytes:,} bytes."
        raise ToolError(message, code="too_large", hint=f"At most {CLIENT_FILE_MAX_BYTES:,} are taken.")
    blocks: list[bytes] = []
    size = 0
    while block := file.read_at(size, CLIENT_BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks), file.stat.mode
