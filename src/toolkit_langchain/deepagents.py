"""The toolkit's files, search and commands as a deepagents backend.

`create_deep_agent(model, backend=DeepAgentsBackend("/path/to/project"))` works on this machine,
`DeepAgentsBackend(sandbox)` in any sandbox client. Files are written atomically, edits keep line endings and bytes
that are not UTF-8, nothing outside the root is reached, and a command's processes end with it.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from uuid import uuid4

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from toolkit_core.errors import ToolError
from toolkit_core.host.bridge import run_blocking
from toolkit_core.limits import BACKEND_FILE_MAX_BYTES, BACKEND_RESULTS_MAX, COMMAND_TIMEOUT_SECONDS
from toolkit_core.ports.search import GlobQuery, GrepQuery
from toolkit_langchain._backend_plane import Plane, plane_of
from toolkit_langchain._pages import Page, read_page, refuse_unreadable

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile
    from toolkit_core.ports.sandbox import SandboxClient

__all__ = ["DeepAgentsBackend"]

T = TypeVar("T")

_TIMED_OUT = 124
"""What timeout(1) exits with."""

_SIGNALLED = 128
"""What a shell adds to a signal's number (POSIX, 2.8.2)."""

_TRANSFER_ERRORS: dict[str, str] = {
    "not_found": "file_not_found",
    "access_denied": "permission_denied",
    "is_a_directory": "is_directory",
    "not_a_file": "invalid_path",
    "invalid_arguments": "invalid_path",
}


class DeepAgentsBackend(SandboxBackendProtocol):
    """A deepagents backend over this machine or a sandbox.

    Every method has a sync and an async form, and answers with an error instead of raising.

    Args:
        target: A folder of this machine, or a sandbox client.
        root: The folder in the sandbox that everything stays below; not for a folder of this machine.
        overwrite: Whether `write` replaces a file that exists. deepagents' published tests want a refusal, its
            tool's own description a replacement.
        glob_paths: How `glob` spells paths: "relative" to the searched folder, as deepagents' published tests
            want, or "absolute", as its permission rules need: take "absolute" where you give it `permissions`.
        timeout_seconds: The default limit of a command.

    Raises:
        ValueError: The folder is missing or empty.
        TypeError: The target is neither a folder nor a sandbox client.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | SandboxClient,
        *,
        root: str | None = None,
        overwrite: bool = False,
        glob_paths: Literal["relative", "absolute"] = "relative",
        timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
    ) -> None:
        if glob_paths not in ("relative", "absolute"):
            raise ValueError(f'glob_paths is "relative" or "absolute", not {glob_paths!r}')
        self._plane: Plane = plane_of(target, root)
        self._overwrite, self._absolute = overwrite, glob_paths == "absolute"
        self._timeout_seconds = timeout_seconds
        self._id = f"toolkit-{uuid4().hex[:12]}"

    @property
    def id(self) -> str:
        """Unique in this process and beyond."""
        return self._id

    @property
    def root(self) -> str:
        """The absolute folder that everything stays below."""
        return self._plane.root

    # --- reading --------------------------------------------------------------------------------------

    async def als(self, path: str) -> LsResult:
        """The entries of a folder, with absolute paths."""
        try:
            listing = await self._plane.files.list(_absolute(path), BACKEND_RESULTS_MAX)
        except ToolError as e:
            return LsResult(error=_error(e, path))
        folder = path.rstrip("/")
        return LsResult(
            entries=[
                FileInfo(path=f"{folder}/{entry.name}", is_dir=entry.kind == "directory") for entry in listing.entries
            ]
        )

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Lines of a text file, `offset` counted from 0; a binary file whole, in base64."""
        try:
            page = await self._plane.files.read(_absolute(file_path), lambda file: read_page(file, offset, limit))
        except ToolError as e:
            return ReadResult(error=_error(e, file_path))
        return _read_result(page, limit)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Lines that contain the text, in the whole tree below a folder, ignored files too."""
        limit = BACKEND_RESULTS_MAX if max_count is None else max(1, min(max_count, BACKEND_RESULTS_MAX))
        base = self._plane.root if path is None else path
        query = GrepQuery(pattern, base, glob or "", fixed_strings=True, limit=limit, include_ignored=True)
        try:
            base_subject = (await self._plane.search.resolve(_absolute(base))).subject
            found = await self._plane.search.grep(query)
        except ToolError as e:
            return GrepResult(error=_error(e, base))
        rows = [row for row in found.rows if not row.context]
        matches = [GrepMatch(path=_below(base, base_subject, row.path), line=row.line, text=row.text) for row in rows]
        return GrepResult(matches=matches, truncated=found.truncated or bool(found.incomplete))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Files and folders by name: without `/` at any depth, with one relative to the searched folder."""
        base = self._plane.root if path is None else path
        if ".." in pattern.split("/"):
            return GlobResult(error=f"the pattern {pattern!r} leaves the searched folder")
        query = GlobQuery(_anchored(pattern), base, limit=BACKEND_RESULTS_MAX, include_ignored=True)
        try:
            base_subject = (await self._plane.search.resolve(_absolute(base))).subject
            found = await self._plane.search.glob(query)
        except ToolError as e:
            return GlobResult(error=_error(e, base))
        relative = [_below("", base_subject, name.rstrip("/")).lstrip("/") for name in found.paths]
        matches = [
            FileInfo(path=f"{base.rstrip('/')}/{name}" if self._absolute else name, is_dir=shown.endswith("/"))
            for name, shown in zip(relative, found.paths, strict=True)
            if _shows(pattern, name)
        ]
        cut = found.truncated or bool(found.incomplete)
        return GlobResult(matches=matches, truncated=cut, truncation_reason="budget" if cut else None)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """The bytes of files, each with its own error."""
        return [await self._download(path) for path in paths]

    async def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, await self._plane.files.read(_absolute(path), _whole), None)
        except ToolError as e:
            return FileDownloadResponse(path, None, _transfer_error(e))

    # --- writing --------------------------------------------------------------------------------------

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Write a whole file, its folders made."""

        def produce(old: OpenFile | None) -> bytes:
            if old is not None and not self._overwrite:
                raise ToolError(
                    f"Cannot write to {file_path} because it already exists", hint="Edit it, or write to a new path."
                )
            return _encoded(content)

        try:
            await self._plane.files.replace(_absolute(file_path), produce)
        except ToolError as e:
            return WriteResult(error=_error(e, file_path))
        return WriteResult(path=file_path)

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace text that occurs once, or everywhere it occurs; every other byte stays as it is."""
        edit = {"old_text": old_string, "new_text": new_string, "replace_all": replace_all}
        result = await self._plane.edit_tool.call({"path": file_path, "edits": [edit]})
        if result.error is None:
            return EditResult(path=file_path, occurrences=cast("dict[str, Any]", result.data)["replacements"])
        prefix = _EDIT_ERRORS.get(result.error.code, "").format(path=file_path)
        return EditResult(error=f"{prefix}{result.text}")

    async def adelete(self, file_path: str) -> DeleteResult:
        """Remove a file, or a folder with what is in it; of a link the link."""
        try:
            await self._plane.remove(_absolute(file_path))
        except ToolError as e:
            return DeleteResult(error=_error(e, file_path))
        return DeleteResult(path=file_path)

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write bytes to files, each with its own error; what exists is replaced."""
        return [await self._upload(path, content) for path, content in files]

    async def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        try:
            await self._plane.files.replace(_absolute(path), lambda old: content)
        except ToolError as e:
            return FileUploadResponse(path, _transfer_error(e))
        return FileUploadResponse(path, None)

    # --- commands -------------------------------------------------------------------------------------

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command in the root; stdout, then stderr."""
        seconds = self._timeout_seconds if not timeout or timeout < 0 else float(timeout)
        try:
            result = await self._plane.run(command, seconds)
        except ToolError as e:
            return ExecuteResponse(f"Error ({e.code}): {e.message}", exit_code=1)
        parts = [_decoded(result.stdout), _decoded(result.stderr), result.note]
        if result.timed_out:
            parts.append(f"(timed out after {seconds:g} s; its processes were ended)")
        code = _TIMED_OUT if result.timed_out else result.exit_code
        if code is None and result.signal is not None:
            code = _SIGNALLED + result.signal
        cut = bool(result.stdout_cut or result.stderr_cut)
        return ExecuteResponse("\n".join(part for part in parts if part), exit_code=code, truncated=cut)

    # --- the sync forms ---------------------------------------------------------------------------------

    def ls(self, path: str) -> LsResult:
        """As `als`."""
        return run_blocking(self.als(path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """As `aread`."""
        return run_blocking(self.aread(file_path, offset, limit))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """As `agrep`."""
        return run_blocking(self.agrep(pattern, path, glob, max_count=max_count))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """As `aglob`."""
        return run_blocking(self.aglob(pattern, path))

    def write(self, file_path: str, content: str) -> WriteResult:
        """As `awrite`."""
        return run_blocking(self.awrite(file_path, content))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """As `aedit`."""
        return run_blocking(self.aedit(file_path, old_string, new_string, replace_all))

    def delete(self, file_path: str) -> DeleteResult:
        """As `adelete`."""
        return run_blocking(self.adelete(file_path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """As `aupload_files`."""
        return run_blocking(self.aupload_files(files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """As `adownload_files`."""
        return run_blocking(self.adownload_files(paths))

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """As `aexecute`."""
        return run_blocking(self.aexecute(command, timeout=timeout))


_EDIT_ERRORS = {
    "not_found": "File '{path}' not found. ",
    "no_match": "String not found in file. ",
    "ambiguous_match": "String appears multiple times in the file. ",
}


def _absolute(path: str) -> str:
    """Deepagents' paths are absolute; a relative one would mean another folder to each side."""
    if not path.startswith("/"):
        raise ToolError(f"{path!r} is no absolute path", code="invalid_arguments", hint="Give one that starts with /.")
    return path


def _error(e: ToolError, path: str) -> str:
    prefix = {"not_found": f"File '{path}' not found: ", "too_large": f"File '{path}': "}.get(e.code, "")
    hint = "" if e.code == "too_large" or not e.hint else f"{'' if e.message.endswith('.') else '.'} {e.hint}"
    return f"{prefix}{e.message}{hint}"


def _transfer_error(e: ToolError) -> str:
    return _TRANSFER_ERRORS.get(e.code, f"{e.code}: {e.message}")


def _encoded(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as e:
        message = f"character {e.start + 1} of the content is half of a surrogate pair and has no UTF-8 form"
        raise ToolError(message, code="invalid_arguments") from e


def _decoded(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")


def _whole(file: OpenFile) -> bytes:
    refuse_unreadable(file)
    if file.stat.size_bytes > BACKEND_FILE_MAX_BYTES:
        raise ToolError(f"the file has more than {BACKEND_FILE_MAX_BYTES} bytes", code="too_large")
    parts: list[bytes] = []
    place = 0
    while block := file.read_at(place, 1_048_576):
        parts.append(block)
        place += len(block)
    return b"".join(parts)


def _read_result(page: Page, limit: int) -> ReadResult:
    data = FileData(content=page.content, encoding=page.encoding)
    if page.count == 0:
        return ReadResult(file_data=data)
    last = page.first + page.count - 1
    more = page.total is None or last < page.total
    return ReadResult(
        file_data=data, start_line=page.first, end_line=last, total_lines=page.total, next_offset=last if more else None
    )


def _below(base: str, base_subject: str, found: str) -> str:
    """A path that search spells from its root, spelled below the folder that was asked for."""
    if base_subject in ("", "."):
        return f"{base.rstrip('/')}/{found}"
    if found == base_subject:  # the folder that was asked for is a file
        return base
    return f"{base.rstrip('/')}/{found.removeprefix(base_subject + '/')}"


def _anchored(pattern: str) -> str:
    """deepagents: without `/` at any depth; a leading one anchors to the searched folder."""
    return pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"


def _shows(pattern: str, name: str) -> bool:
    """Names with a leading dot match only a pattern part that has one too."""
    if "/" not in pattern:
        return pattern.startswith(".") or not posixpath.basename(name).startswith(".")
    asked = [part.startswith(".") for part in pattern.strip("/").split("/")]
    return any(asked) or not any(part.startswith(".") for part in name.split("/"))
