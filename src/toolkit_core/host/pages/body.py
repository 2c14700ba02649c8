"""The body of an HTTP answer, decoded piece by piece and never beyond a cap.

A decoder that is given a chunk and no limit expands it whole: 1,579 bytes of brotli become a gigabyte. So only
gzip and deflate are asked for, zlib is told how much it may write, and every other coding is refused.

Sources: RFC 9110 section 8.4 (codings; the stray raw deflate too), RFC 1952 section 2.2 (gzip members).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit_core.errors import ToolError
from toolkit_core.limits import WEB_INFLATE_STEP_BYTES, WEB_YIELD_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpcore

ACCEPTED: Final = "gzip, deflate"

OnBytes = Callable[[int, int | None], None]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_HEAD_BYTES: Final = 2


@dataclass(frozen=True)
class Body:
    """Decoded bytes; `cut` says that more than the cap came."""

    data: bytes
    cut: bool


def header(answer: httpcore.Response, name: bytes) -> str:
    """A header's values joined by commas, "" where it is absent; bytes beyond ASCII as UTF-8, else Latin-1."""
    values = [value for key, value in answer.headers if key.lower() == name]
    joined = b", ".join(values)
    try:
        return joined.decode("utf-8")
    except UnicodeDecodeError:
        return joined.decode("latin-1")


async def read_body(answer: httpcore.Response, *, max_bytes: int, on_bytes: OnBytes | None = None) -> Body:
    """Read and decode up to `max_bytes`.

    Raises:
        ToolError: `unsupported` (a coding that was not asked for), `network_error` (broken or ended early).
    """
    coding = _coding(answer)
    decoder = None if coding is None else _Inflater(coding)
    total = _length(answer) if decoder is None else None
    out = bytearray()
    loop = asyncio.get_running_loop()
    turn = loop.time()
    chunks = cast("AsyncGenerator[bytes, None]", answer.aiter_stream())
    async with aclosing(chunks):
        async for chunk in chunks:
            for piece in (chunk,) if decoder is None else decoder.feed(chunk):
                out += piece[: max_bytes + 1 - len(out)]
                if len(out) > max_bytes:
                    return Body(bytes(out[:max_bytes]), cut=True)
                if loop.time() - turn > WEB_YIELD_SECONDS:
                    await asyncio.sleep(0)
                    turn = loop.time()
            if on_bytes is not None and chunk:
                on_bytes(len(out), total)
    if decoder is not None:
        decoder.end()
    return Body(bytes(out), cut=False)


def _coding(answer: httpcore.Response) -> str | None:
    names = [name.strip().lower() for name in header(answer, b"content-encoding").split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not names:
        return None
    if len(names) > 1 or names[0] not in ("gzip", "x-gzip", "deflate"):
        raise ToolError(
            f"the body is encoded as {', '.join(names)[:100]!r}, though only {ACCEPTED} was asked for",
            code="unsupported",
        )
    return names[0].removeprefix("x-")


def _length(answer: httpcore.Response) -> int | None:
    text = header(answer, b"content-length")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


class _Inflater:
    """gzip (any number of members) or deflate (with the zlib header or raw), a bounded step at a time."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._head = b""
        self._zlib: Any = None
        self._ended = False
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decoded pieces, each of a bounded size."""
        self._started = self._started or bool(data)
        data = self._head + data
        self._head = b""
        while data and not self._ended:
            if self._zlib is None:
                if len(data) < _HEAD_BYTES:
                    self._head = data
                    return
                self._zlib = self._open(data)
                if self._zlib is None:
                    self._ended = True  # what follows the last member is padding, as gzip(1) takes it
                    return
            yield self._step(data)
            data = self._zlib.unconsumed_tail
            if self._zlib.eof:
                data = self._zlib.unused_data
                self._zlib = None
                self._ended = self._coding == "deflate"
                self._coding = "gzip member"

    def end(self) -> None:
        """Check that the data was whole."""
        if self._zlib is not None or (self._head and self._coding != "gzip member"):
            raise ToolError(
                "the compressed body ends before its end", code="network_error", hint="Try again.", retryable=True
            )

    def _open(self, data: bytes) -> Any:
        if self._coding == "gzip member" and not data.startswith(_GZIP_MAGIC):
            return None
        if self._coding.startswith("gzip"):
            return zlib.decompressobj(_GZIP_WINDOW)
        zlib_header = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)

    def _step(self, data: bytes) -> bytes:
        try:
            return self._zlib.decompress(data, WEB_INFLATE_STEP_BYTES)
        except zlib.error as e:
            raise ToolError(f"the body is not valid {self._coding.split()[0]} data: {e}", code="network_error") from e
