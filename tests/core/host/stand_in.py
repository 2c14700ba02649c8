"""A program that takes docker's words, writes them down, and runs what would run in the container on this machine."""

from __future__ import annotations

from pathlib import Path

_PROGRAM = """\
#!/bin/bash
printf '%s\\0' "$@" >> {log}; printf '\\0' >> {log}
case "$1" in
run)
  while [ "$1" != /bin/sh ]; do case "$1" in --name=*) name=${{1#--name=}};; esac; shift; done
  echo $$ > {folder}/"$name"; shift
  exec /bin/sh "$@";;
exec)
  [ "$2" = --interactive ] || exit 125
  pid=$(cat {folder}/"$3" 2>/dev/null); kill -0 "$pid" 2>/dev/null ||
    {{ echo "Error response from daemon: No such container: $3" >&2; exit 1; }}
  shift 4; exec /bin/sh "$@";;
rm) kill -9 "$(cat {folder}/"$3" 2>/dev/null)" 2>/dev/null; rm -f {folder}/"$3";;
esac
"""


def docker_stand_in(folder: Path) -> tuple[str, Path]:
    """The program, and the file that it writes its words to."""
    program, log = folder / "docker", folder / "docker.log"
    containers = folder / "containers"
    containers.mkdir()
    program.write_text(_PROGRAM.format(log=log, folder=containers))
    program.chmod(0o755)
    return str(program), log


def words(log: Path) -> list[list[str]]:
    """Each call's words."""
    calls = log.read_text().split("\0\0") if log.exists() else []
    return [call.split("\0") for call in calls if call]
