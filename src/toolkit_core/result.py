"""The envelope: what every call returns, and its plain JSON form."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic

from typing_extensions import TypeVar

from toolkit_core.display import result_bundle
from toolkit_core.errors import ErrorInfo, ToolError
from toolkit_core.schema import plain_json

DataT = TypeVar("DataT", covariant=True, default=Any)


@dataclass(frozen=True)
class TextBlock:
    """Text that the model reads."""

    text: str


@dataclass(frozen=True)
class ImageBlock:
    """An image that the model sees. `data` holds the file's bytes, not base64."""

    mime_type: str
    data: bytes


Block = TextBlock | ImageBlock


@dataclass(frozen=True)
class ToolResult(Generic[DataT]):
    """What a call returns, success and failure alike.

    Attributes:
        content: Exactly what the model reads.
        data: The declared payload (ARCHITECTURE.md, "One call"); `None` where an error has none.
        error: `None` on success.
        entry_id: The ledger's id of this call, where it was recorded; no part of the value.
    """

    content: tuple[Block, ...]
    data: DataT | None = None
    error: ErrorInfo | None = None
    entry_id: str | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def ok(text: str, data: Any = None, *, images: tuple[ImageBlock, ...] = ()) -> ToolResult[Any]:
        """A success with one text block, then images."""
        return ToolResult((TextBlock(text), *images), data)

    @staticmethod
    def failure(info: ErrorInfo, *, detail: str = "", data: Any = None) -> ToolResult[Any]:
        """An error whose text starts `Error (code): `; a hard one pretends no payload."""
        text = f"{info.text}\n\n{detail}" if detail else info.text
        return ToolResult((TextBlock(text),), None if info.hard else data, info)

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.error is not None

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def images(self) -> tuple[ImageBlock, ...]:
        """The image blocks."""
        return tuple(block for block in self.content if isinstance(block, ImageBlock))

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return result_bundle(self.to_dict(include_images=True))

    def raise_for_error(self) -> ToolResult[DataT]:
        """Return self, or raise `ToolError` where the call failed."""
        if self.error is None:
            return self
        e = self.error
        raise ToolError(
            e.message, code=e.code, hint=e.hint, retryable=e.retryable, detail=self.text, data=self.data
        ) from e.cause

    def to_dict(self, *, include_images: bool = False) -> dict[str, Any]:
        """Plain JSON with the keys content, data and error.

        Integers beyond 64 bits and non-finite floats become strings, lone surrogates are escaped, an
        image is its type, size and SHA-256 (with `include_images` its base64 too).
        """
        return {
            "content": [_block_to_dict(block, include_images) for block in self.content],
            "data": plain_json(self.data),
            "error": None if self.error is None else plain_json(self.error.to_dict()),
        }

    def to_json(self, *, include_images: bool = False) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(include_images=include_images), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ToolResult[Any]:
        """The result that `to_dict` described. An image without its bytes comes back as a line of text.

        Raises:
            ValueError: The mapping does not have the shape that `to_dict` gives.
        """
        try:
            blocks = tuple(_block_from_dict(block) for block in value["content"])
            error = value.get("error")
            fields = ("code", "message", "hint", "retryable")
            info = None if error is None else ErrorInfo(**{k: error[k] for k in fields if k in error})
            return ToolResult(blocks, value.get("data"), info)
        except (KeyError, TypeError, AttributeError) as e:
            raise ValueError(f"not a tool result: {e!r}; expected what to_dict() gives") from e


def _block_to_dict(block: Block, include_images: bool) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": plain_json(block.text)}
    shown: dict[str, Any] = {
        "type": "image",
        "mime_type": block.mime_type,
        "size_bytes": len(block.data),
        "sha256": sha256(block.data).hexdigest(),
    }
    if include_images:
        shown["base64"] = base64.b64encode(block.data).decode("ascii")
    return shown


def _block_from_dict(block: Mapping[str, Any]) -> Block:
    if block["type"] == "text":
        if not isinstance(block["text"], str):
            raise TypeError("the text of a block is no string")
        return TextBlock(block["text"])
    if "base64" in block:
        return ImageBlock(block["mime_type"], base64.b64decode(block["base64"]))
    return TextBlock(f"[image {block['mime_type']}, {block['size_bytes']} bytes, sha256 {block['sha256']}]")
