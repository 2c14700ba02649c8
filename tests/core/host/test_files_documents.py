from __future__ import annotations

import asyncio
import importlib.util
import io
import os
import time
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.documents import PdfDocuments
from toolkit_core.host.files import HostFiles
from toolkit_core.tools import read_file_tool

PDF = "application/pdf"


def pdf(*pages: str, password: str = "") -> bytes:
    require(importlib.util.find_spec("reportlab") and importlib.util.find_spec("pypdf"), "needs reportlab and pypdf")
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption(password) if password else None)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 760 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


async def refused(documents: PdfDocuments, data: bytes, mime_type: str = PDF) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await documents.pages(data, mime_type)
    return caught.value


async def test_pages_come_with_their_numbers() -> None:
    pages = await PdfDocuments().pages(pdf("First page", "Second page"), PDF)
    assert [(page.number, page.text.strip()) for page in pages] == [(1, "First page"), (2, "Second page")]


async def test_read_file_shows_a_pdf_by_page_and_slices_it(workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(pdf("one\ntwo", "three"))
    tool = read_file_tool(HostFiles(workspace), documents=PdfDocuments())
    result = await tool(path="a.bin")
    assert "--- page 1 of 2 ---" in result.text
    assert "three" in result.text
    assert result.data is not None
    assert (result.data["kind"], result.data["size_bytes"]) == ("document", (workspace / "a.bin").stat().st_size)
    assert "three" in (await tool(path="a.bin", offset=-1)).text
    assert "PDF as text by page" in tool.description


@pytest.mark.parametrize("data", [b"%PDF-1.7", b"%PDF-1.7\n" + b"\xff" * 10_000, b"not at all"])
async def test_a_damaged_document_is_unsupported_with_the_reason(data: bytes) -> None:
    pdf("x")
    error = await refused(PdfDocuments(), data)
    assert error.code == "unsupported"
    assert "cannot be parsed" in error.message


async def test_an_encrypted_document_is_unsupported() -> None:
    error = await refused(PdfDocuments(), pdf("secret", password="open sesame"))
    assert (error.code, "encrypted" in error.message) == ("unsupported", True)


async def test_other_types_have_no_reader() -> None:
    assert (await refused(PdfDocuments(), b"x", "application/msword")).code == "unsupported"


async def test_without_pypdf_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    error = await refused(PdfDocuments(), b"%PDF-1.7")
    assert error.code == "unsupported"
    assert "toolkit-core[documents]" in error.hint


async def test_too_slow_is_timed_out() -> None:
    error = await refused(PdfDocuments(timeout_seconds=0.05), pdf(*["page"] * 50))
    assert error.code == "timed_out"


async def test_too_much_text_is_too_large() -> None:
    error = await refused(PdfDocuments(max_text_bytes=100), pdf(*["a page of text\n" * 20] * 3))
    assert error.code == "too_large"


def workers() -> set[str]:
    found: set[str] = set()
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as line:
                    command = line.read()
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    ours = b"KEY" not in environ.read()
            except OSError:
                continue
            if b"document_worker.py" in command and ours:
                found.add(entry)
    return found


async def test_cancelling_kills_and_reaps_the_worker_first() -> None:
    data = pdf(*["some text on a page\n" * 40] * 400)
    before = workers()
    task = asyncio.create_task(PdfDocuments().pages(data, PDF))
    until = time.monotonic() + 20
    mine: set[str] = set()
    while not mine and time.monotonic() < until and not task.done():
        await asyncio.sleep(0.02)
        mine = workers() - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(os.path.exists(f"/proc/{pid}") for pid in mine)
