"""Looking at a path of a plane, and putting a file in its place, by POSIX sh: for clients that only run commands.

POSIX (IEEE 1003.1-2024) for all but `stat` and `readlink -f`, which GNU, BusyBox and the BSDs have; their two
spellings are both tried.
"""

from __future__ import annotations

import posixpath
import secrets
from typing import TYPE_CHECKING, Final, cast

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.limits import CLIENT_PROBE_SECONDS
from toolkit_core.ports.sandbox import PathKind, PathStatus, SupportsReplace, SupportsStat
from toolkit_core.shell_words import assigned
from toolkit_core.text import decoded, one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult
    from toolkit_core.ports.sandbox import SandboxClient

_STAT: Final = """\
of() { {
  LC_ALL=C stat -L -c '%a|%s|%d:%i:%Y:%s:%u:%g:%y:%z' -- "$1" 2>/dev/null ||
  LC_ALL=C stat -L -f '%Lp|%z|%d:%i:%m:%z:%u:%g:%Fm:%Fc' -- "$1" 2>/dev/null || echo "644|$(wc -c <"$1")|::"
} | tr -d ' ' | tr '|' ' '; }
"""
"""Mode, size, and an identity that a change of the file changes too, to the nanosecond where the plane has it."""

_LOOK: Final = (
    _STAT
    + """\
q=$p t=
while [ ! -e "$q" ] && [ ! -L "$q" ] && [ "$q" != / ]; do t=/${q##*/}$t q=${q%/*}; q=${q:-/}; done
r=$(readlink -f -- "$q" 2>/dev/null && echo /) && r=${r%??} || r=$q
[ "$r" = / ] && [ -n "$t" ] && r=
k=missing y=n s='0 0 -' e=
if [ -d "$p" ]; then k=directory
elif [ -f "$p" ]; then k=file s=$(of "$p")
elif [ -e "$p" ]; then k=other
else e=$(LC_ALL=C ls -ldL -- "$p" 2>&1 >/dev/null || :)
fi
[ -r "$p" ] && y=y
printf '%s %s %s %s\\0%s\\0%s\\0' "$m" "$k" "$y" "$s" "$r$t" "$e"
"""
)

_STALE: Final = 75
_SHORT: Final = 76
_FOLDER: Final = 77

_PUT: Final = (
    _STAT
    + f"""\
fail() {{ rm -f -- "$t"; exit "$1"; }}
[ "$(wc -c <"$t" | tr -d ' ')" = "$n" ] || fail {_SHORT}
[ -d "$p" ] && fail {_FOLDER}
if [ -n "$i" ]; then
  s=$(of "$p"); [ "${{s##* }}" = "$i" ] || fail {_STALE}
  chown "$o" "$t" 2>/dev/null || :
  chmod "$d" "$t" || fail 78
  mv -f -- "$t" "$p" || fail 79
elif ln -- "$t" "$p" 2>/dev/null; then rm -f -- "$t"
elif [ -e "$p" ] || [ -L "$p" ]; then fail {_STALE}
else mv -f -- "$t" "$p" || fail 79
fi
printf '%s %s\\0' "$m" "$(of "$p")"
"""
)


async def look(client: SandboxClient, path: str) -> PathStatus:
    """What is at an absolute path, its links followed; `unknown` where the client has no shell to ask.

    Raises:
        ToolError: `unavailable`, `io_error`.
    """
    if isinstance(client, SupportsStat):
        return await client.stat(path)
    mark = _mark()
    script = f"{assigned('p', path)}\nm={mark}\n{_LOOK}"
    result = await client.run(script, timeout_seconds=CLIENT_PROBE_SECONDS)
    if f"{mark} ".encode() not in result.stdout and not result.timed_out:
        return PathStatus(posixpath.normpath(path), "unknown")
    answer = _answer(result, mark)
    fields = answer.split(b"\0")
    words = fields[0].decode("ascii", "replace").split(" ")
    if len(fields) < 3 or len(words) != 5 or not (words[3].isdigit() and words[2].isdigit()):
        raise _garbled(answer)
    kind, readable, mode, size, identity = words
    return PathStatus(
        real=decoded(fields[1]),
        kind=cast("PathKind", kind),
        size_bytes=int(size),
        mode=int(mode, 8),
        identity="" if identity in ("-", "::") else identity,
        trouble=_trouble(decoded(fields[2])),
        readable=readable == "y",
    )


async def put(client: SandboxClient, before: PathStatus, content: bytes) -> PathStatus:
    """Replace the file at `before.real` atomically by a temporary one beside it, renamed.

    Raises:
        ToolError: `stale_file` (it is no longer what `before` says), `is_a_directory`, `io_error`, `unavailable`.
    """
    if isinstance(client, SupportsReplace):
        return await client.replace_bytes(before.real, content, expected=before)
    if before.kind == "unknown":
        await client.write_bytes(before.real, content)
        return PathStatus(before.real, "unknown", len(content))
    folder, _, _ = before.real.rpartition("/")
    temporary = f"{folder}/.toolkit-{secrets.token_hex(8)}.tmp"
    try:
        await client.write_bytes(temporary, content)
        return await _put(client, before, temporary, len(content))
    except BaseException:
        await finish(_forget(client, temporary))
        raise


async def _forget(client: SandboxClient, temporary: str) -> None:
    await client.run(f'{assigned("t", temporary)}\nrm -f -- "$t"', timeout_seconds=CLIENT_PROBE_SECONDS)


async def _put(client: SandboxClient, before: PathStatus, temporary: str, size: int) -> PathStatus:
    mark, exists = _mark(), before.kind == "file"
    owner = ":".join(before.identity.split(":")[4:6])
    lines = [
        assigned("p", before.real),
        assigned("t", temporary),
        f"m={mark} n={size} d={before.mode:o} o={owner or ':'} i={(before.identity or '::') if exists else ''}",
        _PUT,
    ]
    result = await client.run("\n".join(lines), timeout_seconds=CLIENT_PROBE_SECONDS)
    shown = one_line_name(before.real)
    if result.exit_code == _STALE:
        message = f"{shown} was changed by somebody else meanwhile; nothing was written."
        raise ToolError(message, code="stale_file", hint="Read the file again, then decide.", retryable=True)
    if result.exit_code == _FOLDER:
        raise ToolError(f"{shown} is a folder, not a file.", code="is_a_directory")
    if result.exit_code == _SHORT:
        message = f"{shown} was not written: fewer than {size:,} bytes arrived in the sandbox."
        raise ToolError(message, code="io_error", hint="Try again.", retryable=True)
    answer = _answer(result, mark)
    mode, _, rest = answer.partition(b"\0")[0].decode("ascii", "replace").partition(" ")
    number, _, identity = rest.partition(" ")
    if not number.isdigit() or int(number) != size:
        raise _garbled(answer)
    return PathStatus(before.real, "file", size, int(mode, 8), "" if identity == "::" else identity)


def _mark() -> str:
    """What tells an answer from whatever a login shell prints."""
    return f"toolkit-{secrets.token_hex(8)}"


def _answer(result: CommandResult, mark: str) -> bytes:
    _, found, answer = result.stdout.partition(f"{mark} ".encode())
    if result.exit_code != 0 or not found:
        said = result.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        reason = "it did not end in time" if result.timed_out else said[-1] if said else "there was no answer"
        raise ToolError(
            f"The sandbox refused a file operation: {one_line_name(reason)}.",
            code="io_error",
            hint="It needs a POSIX shell with stat, readlink, ln and mv.",
            retryable=result.timed_out,
        )
    return answer


def _garbled(answer: bytes) -> ToolError:
    return ToolError(f"The sandbox gave no usable answer: {answer[:80]!r}.", code="io_error", retryable=True)


def _trouble(said: str) -> str:
    """The system's reason from what ls(1) says; "" for a path that is simply missing."""
    reason = said.strip().rpartition(": ")[2]
    return "" if reason == "No such file or directory" else reason
