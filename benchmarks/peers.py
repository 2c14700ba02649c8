"""Other libraries, each in an environment of its own below .bench/, driven through one worker process each."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.row import PeerWork

KEPT = Path(__file__).resolve().parents[1] / ".bench"
PACKAGES = {
    "deepagents": ["deepagents"],
    "langchain-community": ["langchain-community"],
    "llama-index": ["llama-index-core", "llama-index-readers-web"],
    "mcp-server-fetch": ["mcp-server-fetch"],
}
ANSWER_SECONDS = 60


class Peers:
    """The peers that are there."""

    def __init__(self, *, install: bool) -> None:
        self.absent: list[str] = []
        self._pythons = {name: self._environment(name, install=install) for name in PACKAGES}
        self._workers: dict[str, subprocess.Popen[str]] = {}

    def python(self, name: str) -> str | None:
        """The interpreter of a peer's environment; None where it is absent."""
        return self._pythons[name]

    def of(self, works: Mapping[str, tuple[str, str, dict[str, Any]]]) -> dict[str, PeerWork]:
        """Shown name -> (package, what to do, its arguments), as works; absent ones are left out."""
        return {
            shown: (lambda package=package, do=do, given=given: self.ask(package, do, given))
            for shown, (package, do, given) in works.items()
            if self._pythons[package]
        }

    def ask(self, package: str, do: str, given: dict[str, Any]) -> float:
        """The seconds that a peer took. Raises RuntimeError where it failed or took a minute."""
        worker = self._worker(package)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps({"do": do, **given}) + "\n")
        worker.stdin.flush()
        if not select.select([worker.stdout], [], [], ANSWER_SECONDS)[0]:
            worker.kill()
            del self._workers[package]
            raise RuntimeError(f"more than {ANSWER_SECONDS} s")
        line = worker.stdout.readline()
        if not line:
            del self._workers[package]
            raise RuntimeError("its process died")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"][:120])
        return answer["seconds"]

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.kill()
            worker.wait()

    def _worker(self, package: str) -> subprocess.Popen[str]:
        if package not in self._workers:
            python = self._pythons[package]
            assert python is not None
            self._workers[package] = subprocess.Popen(
                [python, str(Path(__file__).with_name("peer_worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self._workers[package]

    def _environment(self, name: str, *, install: bool) -> str | None:
        folder = KEPT / "venv" / name
        python = folder / "bin" / "python"
        done = folder / ".complete"
        if not done.exists() and install:
            print(f"installing {name} into {folder}", file=sys.stderr, flush=True)
            venv.create(folder, with_pip=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]]
            if subprocess.run(pip, check=False, stderr=subprocess.DEVNULL).returncode == 0:
                done.touch()
        if done.exists():
            return str(python)
        self.absent.append(name)
        return None
