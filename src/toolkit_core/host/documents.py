"""The `Documents` port over pypdf, in a process that is killed when it takes too long."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host.document_worker import DAMAGED, ENCRYPTED, TOO_LONG
from toolkit_core.host.execution import Execution, execute
from toolkit_core.host.supervised import Spec, StartError, Supervised, SupervisorLostError
from toolkit_core.limits import DOCUMENT_MEMORY_BYTES, DOCUMENT_SECONDS, DOCUMENT_TEXT_BYTES
from toolkit_core.ports.documents import Documents, Page

if TYPE_CHECKING:
    from typing import IO

_PROGRAM: Final = Path(__file__).with_name("document_worker.py")
_PDF: Final = "application/pdf"


class PdfDocuments(Documents):
    """Text of PDF files, page by page.

    The parser runs in a process of its own, bounded in time, memory and text; cancelled, it is killed and reaped
    before the cancellation goes on. It needs the extra `documents` (pypdf); without it the port says so.

    Args:
        timeout_seconds: For one document.
        max_text_bytes: Text taken from one document.
    """

    def __init__(self, *, timeout_seconds: float = DOCUMENT_SECONDS, max_text_bytes: int = DOCUMENT_TEXT_BYTES) -> None:
        self._timeout_seconds, self._max_text_bytes = timeout_seconds, max_text_bytes

    async def pages(self, data: bytes, mime_type: str) -> tuple[Page, ...]:
        """The pages of a document.

        Raises:
            ToolError: `unsupported` (another type, no pypdf, encrypted, damaged), `timed_out`, `too_large`,
                `unavailable` (no process can be started).
        """
        folder = _pypdf_folder() if mime_type == _PDF else None
        if folder is None:
            raise _no_reader(mime_type)
        with tempfile.TemporaryFile() as document:
            await asyncio.to_thread(_fill, document, data)
            done = await self._run(folder, document.fileno())
        self._judge(done)
        return await asyncio.to_thread(_parse, done.stdout.data)

    async def _run(self, folder: str, document: int) -> Execution:
        limits = (self._max_text_bytes, DOCUMENT_MEMORY_BYTES, int(self._timeout_seconds) + 1)
        argv = (sys.executable, "-I", "-X", "utf8", os.fspath(_PROGRAM), folder, *map(str, limits))
        spec = Spec(
            argv=argv,
            cwd="/",
            environment={"PATH": os.defpath},
            descriptors={0: document},
            timeout_seconds=self._timeout_seconds,
            grace_seconds=0.0,
        )
        running: set[Supervised] = set()
        try:
            # the worker stops by itself at that many bytes, so nothing is cut out of the middle here
            return await execute(spec, max_bytes=2 * self._max_text_bytes + 65_536, on_output=None, running=running)
        except (StartError, SupervisorLostError, OSError) as e:
            message = f"The reader of documents could not be started: {e}"
            raise ToolError(message, code="unavailable", hint="Extract its text with a program, then read that.") from e

    def _judge(self, done: Execution) -> None:
        if done.ending.timed_out:
            message = f"The document could not be parsed within {self._timeout_seconds:g} s."
            raise ToolError(message, code="timed_out", hint="Extract its text with a program, then read that.")
        status = done.ending.exit_code
        if status == 0:
            return
        if status == ENCRYPTED:
            hint = "Decrypt it with a program first."
            raise ToolError("The document is encrypted with a password.", code="unsupported", hint=hint)
        if status == TOO_LONG:
            message = f"The document holds more than {self._max_text_bytes:,} bytes of text."
            raise ToolError(
                message, code="too_large", hint="Extract the pages you need with a program, then read those."
            )
        reason = done.stderr.data.decode("utf-8", "backslashreplace").strip().splitlines()
        if status == DAMAGED and reason:
            hint = "It is damaged or no PDF; make or fetch it anew, or extract its text with another program."
            raise ToolError(f"The document cannot be parsed: {reason[-1]}", code="unsupported", hint=hint)
        how = f"signal {done.ending.signal}" if done.ending.signal else f"status {status}"
        hint = "Extract its text with a program, then read that."
        raise ToolError(f"The reader of documents ended with {how}.", code="unsupported", hint=hint)


def _no_reader(mime_type: str) -> ToolError:
    if mime_type != _PDF:
        hint = "Turn it into text with a program, then read that."
        return ToolError(f"There is no reader for {mime_type}.", code="unsupported", hint=hint)
    hint = "Install the extra: pip install 'toolkit-core[documents]'."
    return ToolError("Reading PDF needs pypdf, which is not installed.", code="unsupported", hint=hint)


def _pypdf_folder() -> str | None:
    """The folder that pypdf is imported from; None where it is not installed."""
    found = importlib.util.find_spec("pypdf")
    if found is None or found.origin is None:
        return None
    return os.path.dirname(os.path.dirname(found.origin))


def _fill(document: IO[bytes], data: bytes) -> None:
    document.write(data)
    document.flush()
    document.seek(0)


def _parse(output: bytes) -> tuple[Page, ...]:
    lines = output.decode("ascii").splitlines()
    return tuple(Page(number, json.loads(line)) for number, line in enumerate(lines, 1))
