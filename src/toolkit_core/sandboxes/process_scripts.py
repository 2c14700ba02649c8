r"""What keeps a background process on a plane that only runs commands: POSIX sh around a log file and a FIFO.

A keeper in a session of its own starts the command in another one. The command carries a mark in its environment, by
which what left its session is found in /proc too, as `marked` does it. Its output passes through dd(1), which writes
what it reads at once, into a log that is cut to its newest part when it has grown to twice that. Processes are told
from later ones with the same pid by their start time, where /proc gives it (proc_pid_stat(5), field 22).

Files of the private folder: `in` (the command's input), `hold` (a line there closes it), `o` (its output), `out.N`
(the log from byte N), `pid`, and `end` (the exit status, written when all output is in the log).
"""

from __future__ import annotations

import shlex
from typing import Final

from toolkit_core.limits import CLIENT_PROCESS_READ_BYTES, COMMAND_DRAIN_SECONDS, PROCESS_OUTPUT_MAX_BYTES
from toolkit_core.sandboxes.marked import MARK_NAME
from toolkit_core.shell_words import assigned

_STEP_SECONDS: Final = 0.1
"""Between two looks of a script that waits; a sleep(1) without fractions sleeps a whole second."""

_COMMON: Final = f"""\
nap() {{ if sleep {_STEP_SECONDS:g} 2>/dev/null; then i=$((i + 1)); else sleep 1; i=$((i + 10)); fi; }}
born() {{ b=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20); echo "${{b:--}}"; }}
same() {{ kill -0 "$1" 2>/dev/null && [ "$(born "$1")" = "$2" ]; }}
left() {{
  for f in $(grep -lsF -- "{MARK_NAME}=$m.run" /proc/[0-9]*/environ 2>/dev/null); do
    f=${{f%/environ}}; echo "${{f#/proc/}}"
  done
  sed -n "s/^\\([0-9]*\\) (.*) [^ZX] [0-9]* [0-9]* $P .*/\\1/p" /proc/[0-9]*/stat 2>/dev/null
}}
"""

_SWEEP: Final = """\
sweep() {
  j=0
  while q="$(left) $(left)"; [ -n "${q# }" ] && [ "$j" -lt 100 ]; do
    for f in $q; do kill -9 "$f" 2>/dev/null; done
    j=$((j + 1))
  done
}
"""
"""Looked for twice: while a process is about to run another program, its environment reads as empty."""

_KEEPER: Final = (
    _COMMON
    + _SWEEP
    + f"""\
d=$1 m=$2 M={PROCESS_OUTPUT_MAX_BYTES}
mkfifo "$d/in" "$d/hold" "$d/o" && : >"$d/out.0" || exit 1
exec 4<>"$d/in" 5<>"$d/hold"
( exec 6>"$d/in" 4>&-; read -r _ <&5 ) &
H=$!
( exec 4>&- 5>&- 7<"$d/o"; b=0 n=0
  while :; do
    dd bs=16384 count=64 <&7 >>"$d/out.$b" 2>/dev/null
    k=$(($(wc -c <"$d/out.$b"))); [ "$k" -gt "$n" ] || break
    n=$k
    if [ "$k" -gt $((2 * M)) ]; then
      tail -c "$M" "$d/out.$b" >"$d/t" && mv "$d/t" "$d/out.$((b + k - M))" || break
      rm -f "$d/out.$b"; b=$((b + k - M)) n=$M
    fi
  done ) &
B=$!
S=; if command -v setsid >/dev/null 2>&1; then S=setsid; else set -m; fi
{MARK_NAME}=$m.run $S sh -c 'command -v bash >/dev/null 2>&1 && exec bash --norc -c "$1"
exec sh -c "$1"' sh "$3" <"$d/in" >"$d/o" 2>&1 4>&- 5>&- &
P=$!
exec 4>&- 5>&-
echo "$P $(born "$P") $$ $(born $$)" >"$d/p" && mv "$d/p" "$d/pid"
wait "$P" 2>/dev/null; c=$?
kill -9 -- "-$P" 2>/dev/null
sweep
i=0
while kill -0 "$B" 2>/dev/null && [ "$i" -lt {COMMAND_DRAIN_SECONDS / _STEP_SECONDS:g} ]; do nap; done
echo "$c" >"$d/e" && mv "$d/e" "$d/end"
kill -9 "$H" "$B" 2>/dev/null
kill -9 -- "-$$" 2>/dev/null
"""
)
"""The last line ends what reads the output of somebody who got away: the keeper's own group."""

_START: Final = f"""\
i=0
d=$(mktemp -d "${{TMPDIR:-/tmp}}/toolkit-$m.XXXXXX") || exit 1
case $d in /*) ;; *) d=$PWD/$d ;; esac
S=; if command -v setsid >/dev/null 2>&1; then S=setsid; else set -m; fi
{MARK_NAME}=$m.keep $S sh -c "$k" sh "$d" "$m" "$c" </dev/null >/dev/null 2>&1 &
while [ ! -s "$d/pid" ] && [ "$i" -lt 100 ]; do nap; done
printf '%s %s %s\\n' "$m" "$(cat "$d/pid")" "$d"
"""

_LOOK: Final = f"""\
M={PROCESS_OUTPUT_MAX_BYTES} L={CLIENT_PROCESS_READ_BYTES} i=0
status() {{ e=$(cat "$d/end" 2>/dev/null) || e=; }}
size() {{
  b=-1
  for f in "$d"/out.*; do
    f=${{f##*.}}; case $f in *[!0-9]*) ;; *) [ "$f" -gt "$b" ] && b=$f ;; esac
  done
  [ "$b" -ge 0 ] || b=0
  n=$(wc -c <"$d/out.$b" || echo 0)
  n=$((b + n))
}}
while :; do
  status; [ -n "$e" ] || same "$K" "$KB" || {{ status; e=${{e:-lost}}; }}
  size
  if [ -n "$e" ] || [ "$n" -gt "$seen" ] || [ "$i" -ge "$w" ]; then break; fi
  nap
done
[ -z "$e" ] && [ "$w" -gt 0 ] && [ "$n" -gt "$seen" ] && {{ nap; status; size; }}
s=$o
[ "$s" -lt $((n - M)) ] && s=$((n - M))
[ "$s" -lt "$b" ] && s=$b
a=$((n - s)); [ "$a" -gt "$L" ] && a=$L
[ "$a" -gt 0 ] || a=0
printf '%s %s %s %s %s\\n' "$m" "${{e:--}}" "$n" "$s" "$a"
[ "$a" -gt 0 ] && tail -c "+$((s - b + 1))" "$d/out.$b" | head -c "$a" | od -An -v -tx1
printf '%s.\\n' "$m"
"""

_FEED: Final = """\
i=0
if [ -e "$d/end" ]; then printf '%s ended\\n' "$m"; exit 0; fi
cat "$d/w" >"$d/in" 2>/dev/null </dev/null &
c=$!
while kill -0 "$c" 2>/dev/null && [ "$i" -lt "$w" ]; do nap; done
s=0
if [ "$i" -ge "$w" ] && kill -0 "$c" 2>/dev/null; then kill -9 "$c"; wait "$c" 2>/dev/null; s=late
else wait "$c" 2>/dev/null; s=$?; fi
rm -f "$d/w"
[ "$s" != 0 ] && [ -e "$d/end" ] && s=ended
printf '%s %s\\n' "$m" "$s"
"""

_STOP: Final = (
    _SWEEP
    + f"""\
i=0
over() {{ [ -e "$d/end" ] || ! same "$K" "$KB"; }}
all() {{ same "$P" "$PB" && kill -"$1" -- "-$P" 2>/dev/null; for q in $(left); do kill -"$1" "$q" 2>/dev/null; done; }}
over || all TERM
while ! over && [ "$i" -lt "$w" ]; do nap; done
over || all 9
while ! over && [ "$i" -lt $((w + 100)) ]; do nap; done
[ -e "$d/end" ] || all 9
sweep
if [ ! -e "$d/end" ]; then
  for f in $(grep -lsF -- "{MARK_NAME}=$m.keep" /proc/[0-9]*/environ 2>/dev/null); do
    f=${{f%/environ}}; kill -9 "${{f#/proc/}}" 2>/dev/null
  done
fi
over && printf '%s over\\n' "$m"
"""
)


def start_script(mark: str, command: str) -> str:
    """Starts a keeper; says `MARK pid born keeper's-pid keeper's-born folder` when the command runs."""
    return "\n".join([f"m={mark}", assigned("c", command), assigned("k", _KEEPER), _COMMON, _START])


def undo_script(mark: str) -> str:
    """Ends what a start began whose answer nobody got: keeper and command, and the folder."""
    return f"""\
j=0
while q=$(grep -lsF -- "{MARK_NAME}={mark}." /proc/[0-9]*/environ 2>/dev/null); [ -n "$q" ] && [ "$j" -lt 100 ]; do
  for f in $q; do f=${{f%/environ}}; kill -9 "${{f#/proc/}}" 2>/dev/null; done
  j=$((j + 1))
done
rm -rf -- "${{TMPDIR:-/tmp}}/toolkit-{mark}".*"""


def look_script(place: str, *, offset: int, seen: int, wait_seconds: float) -> str:
    """Waits for a log longer than `seen` or the end, then says `MARK status size from count`, the bytes, `MARK.`.

    The bytes are those at `from` in hexadecimal, since some planes carry text only; the status is `-` while it runs,
    and `lost` where the keeper is gone without having written one.
    """
    return f"{place}\n{_COMMON}o={offset} seen={seen} w={_steps(wait_seconds)}\n{_LOOK}"


def collect_script(place: str, data: bytes, *, first: bool) -> str:
    """Puts a piece of what is to be written into a file there."""
    words = "".join(f"\\{byte:03o}" for byte in data)
    return f"{place}\nprintf '{words}' >{'' if first else '>'}\"$d/w\" || exit 1"


def feed_script(place: str, *, within_seconds: float) -> str:
    """Writes that file into the input; says `MARK 0`, an exit status, `late`, or `ended`."""
    return f"{place}\n{_COMMON}w={_steps(within_seconds)}\n{_FEED}"


def close_script(place: str) -> str:
    """Closes the input; the FIFO is opened for both, which never blocks."""
    return f"""{place}\n[ -p "$d/hold" ] && echo 1<>"$d/hold"\nprintf '%s 0\\n' "$m\""""


def stop_script(place: str, *, grace_seconds: float) -> str:
    """TERM, grace, KILL; says `MARK over` when it has ended."""
    return f"{place}\n{_COMMON}w={_steps(grace_seconds)}\n{_STOP}"


def over_script(places: list[str]) -> str:
    """Says `INDEX over` for each process that has ended."""
    checks = [
        f'{place}\n{{ [ -e "$d/end" ] || ! same "$K" "$KB"; }} && printf \'%s {index} over\\n\' "$m"'
        for index, place in enumerate(places)
    ]
    return "\n".join([_COMMON, *checks, ":"])


def place_words(mark: str, folder: str, leader: tuple[str, str], keeper: tuple[str, str]) -> str:
    """The line that tells a script which process is meant."""
    return f"m={mark} P={leader[0]} PB={leader[1]} K={keeper[0]} KB={keeper[1]}\nd={shlex.quote(folder)}"


def _steps(seconds: float) -> int:
    return round(seconds / _STEP_SECONDS)
