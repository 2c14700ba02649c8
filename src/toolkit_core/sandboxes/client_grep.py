"""Matching content inside a plane: which engine, what it is told, and its rows."""

from __future__ import annotations

import re
import secrets
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.limits import CLIENT_LISTING_MAX_BYTES, CLIENT_PROBE_SECONDS, CLIENT_SCRIPT_BYTES
from toolkit_core.line_ends import across_any_line_end, speaks_of_cr
from toolkit_core.ports.search import GrepFound, GrepQuery, Row
from toolkit_core.sandboxes.plane_output import whole_output
from toolkit_core.sandboxes.posix_pattern import extended_pattern
from toolkit_core.search_text import cut_line
from toolkit_core.shell_words import arguments, assigned
from toolkit_core.text import decoded, one_line_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.search import GrepMode

_NO_ENGINE: Final = 65
_REFUSED: Final = 66

_RIPGREP: Final = "--no-config --no-ignore --hidden --no-follow --color=never --no-mmap --null --sort=path"
_RIPGREP_MODES: Final[dict[GrepMode, str]] = {
    "content": r"--no-heading --with-filename --line-number --column --field-match-separator=\x00",
    "files_with_matches": "--files-with-matches",
    "count": "--count --with-filename",
}
_GREP_MODES: Final[dict[GrepMode, str]] = {"content": "-nH", "files_with_matches": "-l", "count": "-cH"}

_SCRIPT: Final = """\
cd -- "$p" || exit {refused}
e=
if command -v rg >/dev/null 2>&1; then
  if m=$(rg {ripgrep} -e "$x" -- /dev/null 2>&1); [ $? -le 1 ]; then e='rg {ripgrep}'
  elif rg --pcre2 {ripgrep} -e "$x" -- /dev/null >/dev/null 2>&1; [ $? -le 1 ]; then e='rg --pcre2 {ripgrep}'
  else printf '%s' "$m" >&2; exit {refused}
  fi
elif command -v grep >/dev/null 2>&1 && [ -n "$y" ]; then
  export LC_ALL=C
  m=$(grep --null {grep} -e "$y" -- /dev/null 2>&1); [ $? -le 1 ] || {{ printf '%s' "$m" >&2; exit {no_engine}; }}
  e='grep --null {grep}' x=$y
else exit {no_engine}
fi
printf '%s\\0' "${{e%% *}}"
{feed} | xargs -0 sh -c 'e=$1 x=$2; shift 2; $e -e "$x" -- "$@"; [ $? -le 2 ]' sh "$e" "$x" | head -c {cap}
exit 0
"""
_LINE: Final = re.compile(
    rb"(?P<path>\./[^\0]*)\0(?P<line>\d+)(?P<mark>[:\0-])(?:(?P<column>\d+)\0)?(?P<text>[^\n]*)(?:\n|\Z)"
)
_COUNT: Final = re.compile(rb"(?P<path>\./[^\0]*)\0(?P<number>\d+)\r?\n")
_NAME: Final = re.compile(rb"(?P<path>\./[^\0]*)\0")
_BINARY: Final = re.compile(
    rb"^(?:grep: |Binary file )?(?P<path>\./[^\n\0]*?)"
    rb"(?:: (?:WARNING: stopped searching )?binary file[^\n\0]*| matches)\n",
    re.MULTILINE,
)
"""What ripgrep and grep say of a binary file that matches; no row, for a row has a NUL."""


async def grep_files(
    client: SandboxClient,
    query: GrepQuery,
    root: str,
    paths: Sequence[str],
    shown: str,
    budget_seconds: float,
    *,
    as_text: bool = False,
) -> GrepFound:
    """Search these files, paths below `root` in their order, and show them behind `shown`."""
    if "\n" in query.pattern and not query.multiline:
        raise _spans_lines()
    ordered = sorted(paths, key=lambda path: path.replace("/", "\0"))
    listed = None if sum(map(len, ordered)) <= CLIENT_SCRIPT_BYTES else f"/tmp/.toolkit-{secrets.token_hex(16)}"  # noqa: S108 - of the sandbox, its name random
    try:
        if listed is not None:
            names = b"".join(b"./" + path.encode("utf-8", "surrogateescape") + b"\0" for path in ordered)
            await client.write_bytes(listed, names)
        script = _script(query, root, ordered, listed, as_text=as_text)
        output, result = await whole_output(client, script, timeout_seconds=budget_seconds)
    finally:
        if listed is not None:
            await finish(_remove(client, listed))
    _refuse(query, result.exit_code, result.stderr)
    engine, _, rest = output.partition(b"\0")
    found = _Found(query, shown).read(rest)
    unreadable = sum(line.startswith((b"rg: ./", b"grep: ./")) for line in result.stderr.split(b"\n"))
    cut = result.timed_out or len(rest) >= CLIENT_LISTING_MAX_BYTES // 2
    return replace(
        found,
        skipped_unreadable=unreadable,
        engine="ripgrep" if engine == b"rg" else "grep",
        incomplete="the search" if cut and not found.truncated else "",
    )


async def count_binary(
    client: SandboxClient, query: GrepQuery, root: str, paths: Sequence[str], budget_seconds: float
) -> int:
    """How many of these files have a NUL, as ripgrep sees them; each is read up to its first one."""
    wanted = replace(query, pattern=r"(?-u)\x00", mode="files_with_matches", fixed_strings=False, multiline=False)
    wanted = replace(wanted, limit=max(1, len(paths)))
    return len((await grep_files(client, wanted, root, paths, "", budget_seconds, as_text=True)).counts)


async def _remove(client: SandboxClient, path: str) -> None:
    await client.run(f"rm -f {path}", timeout_seconds=CLIENT_PROBE_SECONDS)


def _script(query: GrepQuery, root: str, paths: Sequence[str], listed: str | None, *, as_text: bool) -> str:
    extended = extended_pattern(query)
    wide = across_any_line_end(query)
    flags = {"--ignore-case": wide.ignore_case, "--fixed-strings": wide.fixed_strings, "--multiline": wide.multiline}
    flags["--crlf"] = not speaks_of_cr(query) or query.multiline
    flags["--text"] = as_text
    context = f"-C {query.context_lines}" if query.mode == "content" and query.context_lines else ""
    ripgrep = [_RIPGREP, _RIPGREP_MODES[query.mode], *[flag for flag, on in flags.items() if on], context]
    grep = [_GREP_MODES[query.mode], "-F" if query.fixed_strings else "-E", "-i" if query.ignore_case else "", context]
    feed = f"cat {listed}" if listed is not None else "printf '%s\\0' \"$@\""
    lines = [
        assigned("p", root),
        f"x={shlex.quote(wide.pattern)} y={shlex.quote(extended or '')}",
        "" if listed is not None else arguments([f"./{path}" for path in paths] or ["/dev/null"]),
        _SCRIPT.format(
            refused=_REFUSED,
            no_engine=_NO_ENGINE,
            ripgrep=" ".join(filter(None, ripgrep)),
            grep=" ".join(filter(None, grep)),
            feed=feed,
            cap=CLIENT_LISTING_MAX_BYTES // 2,
        ),
    ]
    return "\n".join(lines)


def _refuse(query: GrepQuery, status: int | None, stderr: bytes) -> None:
    said = stderr.decode("utf-8", "backslashreplace").strip().removeprefix("rg: ")
    if status == _REFUSED and 'the literal "\\n" is not allowed' in said:
        raise _spans_lines()
    if status == _REFUSED:
        raise ToolError(
            f"The pattern is no valid regular expression.\nripgrep: {said}",
            code="invalid_arguments",
            hint="Mend the pattern, or set fixed_strings to search for it as plain text.",
        )
    if status == _NO_ENGINE:
        raise ToolError(
            f"This sandbox has no ripgrep, and its grep does not take {one_line_name(query.pattern)!r}.",
            code="unsupported",
            hint="Use a plainer pattern, on single lines, or set fixed_strings.",
        )
    if status not in (0, None):
        raise ToolError(f"The search in the sandbox ended with {status}: {said}", code="io_error", retryable=True)


def _spans_lines() -> ToolError:
    return ToolError(
        "The pattern holds a line feed, and the search goes line by line: it could never match.",
        code="invalid_arguments",
        hint="Set multiline to true to match across lines.",
    )


@dataclass
class _Found:
    """The engine's output, file by file."""

    query: GrepQuery
    shown: str
    binary: set[bytes] = field(default_factory=set[bytes])

    def read(self, output: bytes) -> GrepFound:
        self.binary = {match["path"] for match in _BINARY.finditer(output)}
        output = _BINARY.sub(b"", output)
        if self.query.mode != "content":
            return self._files(output)
        rows: list[Row] = []
        left, truncated = self.query.limit, False
        for row in self._rows(output):
            left -= not row.context
            if left < 0:
                truncated = True
                break
            if left > 0 or not (row.context and row.gap):
                rows.append(row)
            elif row.context:
                left = 0
        return GrepFound(tuple(rows), truncated=truncated, skipped_binary=len(self.binary))

    def _files(self, output: bytes) -> GrepFound:
        counting = self.query.mode == "count"
        counts: list[tuple[str, int]] = []
        for match in (_COUNT if counting else _NAME).finditer(output):
            number = int(match["number"]) if counting else 1
            if number and match["path"] not in self.binary:
                counts.append((self._path(match["path"]), number))
        limit = self.query.limit
        return GrepFound(counts=tuple(counts[:limit]), truncated=len(counts) > limit, skipped_binary=len(self.binary))

    def _rows(self, output: bytes) -> Iterator[Row]:
        last, before = b"", 0
        for match in _LINE.finditer(output):
            path, text, number = match["path"], match["text"], int(match["line"])
            if path in self.binary:
                continue
            context, column = match["mark"] == b"-", int(match["column"] or 1)
            gap = self.query.context_lines > 0 and (path != last or number != before + 1)
            shown, cut = cut_line(text, column - 1)
            last, before = path, number
            yield Row(self._path(path), number, shown, context, gap, cut)

    def _path(self, reported: bytes) -> str:
        return self.shown + decoded(reported[2:])
