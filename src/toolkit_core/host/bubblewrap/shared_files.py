"""Whole files of the sandbox's workspace: the host's own, under the sandbox's promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.host.bubblewrap.arguments import within
from toolkit_core.host.files import HostFiles
from toolkit_core.text import one_line_name
from toolkit_core.trust_inputs import trust_input

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile

_BLOCK_BYTES = 1 << 20


class SharedFiles:
    """Reads and replaces files in the writable folders; hidden ones and trust inputs are refused.

    Args:
        writable: Real folders, the workspace first.
        hidden: Real paths.
    """

    def __init__(self, writable: Sequence[str], hidden: Sequence[str]) -> None:
        self._writable = tuple(writable)
        self._hidden = tuple(hidden)
        self._files = HostFiles(writable[0], extra_roots=writable[1:])

    async def read(self, path: str) -> bytes:
        """A whole file."""

        def consume(file: OpenFile) -> bytes:
            self._check_visible(file.path.real, path)
            blocks: list[bytes] = []
            offset = 0
            while block := file.read_at(offset, _BLOCK_BYTES):
                blocks.append(block)
                offset += len(block)
            return b"".join(blocks)

        return await self._files.read(path, consume)

    async def write(self, path: str, content: bytes) -> None:
        """Replace a whole file, its folders made."""
        real = (await self._files.resolve(path)).real
        self._check_visible(real, path)
        for root in self._writable:
            if within(real, root) and (found := trust_input(real[len(root) + 1 :])) is not None:
                raise ToolError(
                    f"{one_line_name(path)} lies in the trust input {found}, which the sandbox keeps read-only",
                    code="access_denied",
                    hint="Choose another path, or let a person change it.",
                )
        await self._files.replace(path, lambda _: content)

    def _check_visible(self, real: str, path: str) -> None:
        if any(within(real, hidden) for hidden in self._hidden):
            raise ToolError(
                f"{one_line_name(path)} is hidden in the sandbox",
                code="access_denied",
                hint="Choose another path.",
            )
