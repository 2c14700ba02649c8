"""A large page: web_fetch against a bare GET with the same converter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from html_to_markdown import convert

from benchmarks.fetchers import CHILD, serving
from benchmarks.row import PeerWork, Row
from benchmarks.search import answered
from toolkit_core.host.egress import Egress
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import web_fetch_tool

if TYPE_CHECKING:
    from benchmarks.peers import Peers


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """One row."""
    port = serving()
    url = f"http://127.0.0.1:{port}/page"
    tool = web_fetch_tool(HostWeb(egress=Egress(allow_private=["127.0.0.1"])), timeout_seconds=60)

    async def bare() -> None:
        async with httpx.AsyncClient() as client:
            convert((await client.get(url)).text)

    python = peers.python("mcp-server-fetch")
    others = {"mcp-server-fetch": fetched(python, port)} if python else {}
    yield Row("web_fetch of a 2.5 MB page", 1.3, answered(lambda: tool(url=url)), bare, others)


def fetched(python: str, port: int) -> PeerWork:
    """A peer's fetch, in a process of its own; the start of the process does not count."""

    def run() -> float:
        command = [python, CHILD, "--child", "mcp-server-fetch", "page", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        try:
            return json.loads(done.stdout.splitlines()[-1])["seconds"]
        except (ValueError, IndexError):
            raise RuntimeError("no answer") from None

    return run
