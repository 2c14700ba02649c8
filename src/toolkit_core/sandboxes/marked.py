"""Finding what a command left on a plane that cannot kill it: by a variable in its environment."""

from __future__ import annotations

from typing import Final

MARK_NAME: Final = "TOOLKIT_RUN"
"""Set for a command and so for all that it starts, unless that clears its environment."""

KILL_SECONDS: Final = 10.0
"""Finding and killing takes milliseconds; the plane may be busy."""


def kill_script(mark: str) -> str:
    """A script that kills every process with the mark (Linux, by /proc) and exits with 0 when none is left."""
    return f"""\
[ -r /proc/self/environ ] || exit 1
left() {{ grep -lsF -- "{MARK_NAME}={mark}" /proc/[0-9]*/environ 2>/dev/null; }}
i=0
while q=$(left); [ -n "$q" ]; do
  for f in $q; do f=${{f%/environ}}; kill -9 "${{f#/proc/}}" 2>/dev/null; done
  i=$((i + 1)); [ "$i" -lt 100 ] || exit 1
done
exit 0"""
