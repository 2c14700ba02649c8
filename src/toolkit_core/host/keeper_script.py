r"""What runs on the far side of a channel (SSH, docker exec): a keeper around the command, in POSIX sh.

The channel's standard input is the lease: while it is open the keeper waits for `TERM` and `KILL` lines, and at its
end, which comes when the connection or its owner is gone, it kills everything. The command gets a session of its
own (setsid(1)) and a mark in its environment, by which what left its process group is found in /proc as well. It is
looked for twice: while a process is about to run another program, its environment reads as empty.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping
from typing import Final

from toolkit_core.errors import ToolError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KEEPER: Final = """\
exec 3<&0 </dev/null
T={mark} R={label}
printf '%s\\n' "$T" >&2
left() {{
  for f in $(grep -lsF -- "TOOLKIT_RUN=$R" /proc/[0-9]*/environ 2>/dev/null); do
    f=${{f%/environ}}; echo "${{f#/proc/}}"
  done
}}
end() {{ kill -"$1" -- "-$P" 2>/dev/null; for q in $(left); do kill -"$1" "$q" 2>/dev/null; done; }}
there() {{ q=$(left); [ -n "$q" ] || kill -0 -- "-$P" 2>/dev/null; }}
sweep() {{
  i=0 n=0
  kill -0 -- "-$P" 2>/dev/null && n=1
  while there || there; do
    [ "$i" = 0 ] && [ -n "$q" ] && {{ set -- $q; n=$#; }}
    end 9; i=$((i + 1)); [ "$i" -lt 100 ] || break
  done
}}
I='printf "%s %s\\n" "$1" "$$"
cd -- "$2" 2>/dev/null || {{ w=missing; [ -e "$2" ] && w=file; [ -d "$2" ] && w=closed
  printf "%s %s\\n" "$1" "$w"; exit 1; }}
printf "%s started\\n" "$1"
'{exports}'
command -v bash >/dev/null 2>&1 && exec bash --norc -c "$3"
exec sh -c "$3"'
S=; if command -v setsid >/dev/null 2>&1; then S=setsid; else set -m; fi
TOOLKIT_RUN=$R $S sh -c "$I" sh "$T" {folder} {command} 3<&- &
P=$!
( while read -r w <&3; do case $w in TERM) end TERM;; KILL) end 9; sweep;; esac; done; end 9; sweep ) >/dev/null 2>&1 &
K=$!
exec 3<&-
wait "$P" 2>/dev/null; c=$?
sweep >/dev/null 2>&1
{{ kill -9 "$K"; wait "$K"; }} 2>/dev/null
printf '\\n%s %s %s\\n' "$T" "$c" "$n"
exit 0
"""


def new_mark() -> str:
    """What tells the keeper's words from the command's output, and finds its processes."""
    return f"toolkit{secrets.token_hex(12)}"


def keeper(mark: str, command: str, folder: str, environment: Mapping[str, str], command_file: str = "") -> str:
    """The script, for `sh -c`.

    Args:
        mark: From `new_mark`.
        command: For bash, or sh where there is none.
        folder: Absolute folder to start in.
        environment: Variables to add.
        command_file: A file there that holds the command, for one too long to be an argument; removed when read.

    Raises:
        ToolError: `invalid_arguments`: a variable that no environment can hold.
    """
    exports: list[str] = []
    for name, value in environment.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ToolError(f"{name!r} cannot be set in an environment.", code="invalid_arguments")
        exports.append(f"export {name}={shlex.quote(value)}")
    words, read = shlex.quote(command), ""
    if command_file:
        read = f"$(cat {command_file}; rm -f {command_file}; echo x)"
        words = '"${C%x}"'
    script = _KEEPER.format(
        mark=mark,
        label=_label(mark),
        exports=shlex.quote("\n".join(exports)),
        folder=shlex.quote(folder),
        command=words,
    )
    if read:
        script = f"C={read}\n{script}"
    return script


def _label(mark: str) -> str:
    """What the command's environment shows of the mark: not enough to speak as the keeper does."""
    return mark[: len(mark) // 2]


def killer(mark: str) -> str:
    """The script that kills what a keeper left, on a channel of its own."""
    return f"""\
for f in $(grep -lsF -- "TOOLKIT_RUN={_label(mark)}" /proc/[0-9]*/environ 2>/dev/null); do
  f=${{f%/environ}} f=${{f#/proc/}}; kill -9 -- "-$f" 2>/dev/null; kill -9 "$f" 2>/dev/null
done
:"""


def by_login_shell(script: str) -> str:
    """A script as the command line of a login shell, which must take POSIX quoting."""
    return f"exec /bin/sh -c {shlex.quote(script)}"
