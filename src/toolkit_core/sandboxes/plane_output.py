"""The whole output of a command of a plane, however much it is and whatever bytes it holds."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.limits import CLIENT_LISTING_MAX_BYTES, CLIENT_PROBE_SECONDS

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult
    from toolkit_core.ports.sandbox import SandboxClient

_REPLACED: Final = "\N{REPLACEMENT CHARACTER}".encode()


async def whole_output(
    client: SandboxClient, script: str, *, timeout_seconds: float, max_bytes: int = CLIENT_LISTING_MAX_BYTES
) -> tuple[bytes, CommandResult]:
    """Run a script that changes nothing, and return all of its standard output.

    What came through the client is taken where it is whole and exact; output that was cut, or that a client which
    carries text may have altered, is written to a file there, by a second run, and that file is read.

    Raises:
        ToolError: `too_large`: more than `max_bytes`.
    """
    result = await client.run(script, timeout_seconds=timeout_seconds)
    if not result.stdout_cut and _REPLACED not in result.stdout:
        return result.stdout, result
    path = f"/tmp/.toolkit-{secrets.token_hex(16)}"  # noqa: S108 - of the sandbox, and made new by mktemp's rule
    filed = f"umask 077; set -C; (\n{script}\n) > {path} || exit\nwc -c < {path}"
    try:
        result = await client.run(filed, timeout_seconds=timeout_seconds)
        size = result.stdout.strip()
        if size.isdigit() and int(size) > max_bytes:
            raise ToolError(f"The answer of the sandbox has {int(size):,} bytes.", code="too_large")
        return await client.read_bytes(path), result
    finally:
        await finish(_remove(client, path))


async def _remove(client: SandboxClient, path: str) -> None:
    await client.run(f"rm -f {path}", timeout_seconds=CLIENT_PROBE_SECONDS)
