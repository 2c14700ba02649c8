"""The same hostile local server against web_fetch and other fetch tools: `python -m benchmarks.fetchers`.

Every cell is a process of its own in the peer's environment, given 14 seconds. Names are resolved by a scripted
look-up, and connections to the public address arrive at the local server, so that guards are tested too.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

PUBLIC = "93.184.216.34"
SECONDS = 14
CHILD = __file__
CASES = ("loopback", "rebinding", "redirect", "bomb", "endless", "drip", "charset")
TITLES = {
    "loopback": "loopback",
    "rebinding": "rebinding",
    "redirect": "redirect to loopback",
    "bomb": "gzip bomb 300 MB",
    "endless": "endless body",
    "drip": "slow drip",
    "charset": "meta charset",
}
SECRET = "the-local-secret"
DIRECTLY: list[bool] = []  # whether each connection went to a local address
JAPANESE = "日本語"
PAGE = (
    "<title>Large</title>"
    + "".join(
        f"<h2>Part {n}</h2><p>Some <b>text</b> with a <a href='/p/{n}'>link</a> in it.</p>\n" for n in range(33_000)
    )
).encode()


@cache
def bomb() -> bytes:
    """300 MB of one letter."""
    return gzip.compress(b"a" * 300 * 1024 * 1024)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer by path; what is endless stops when the client goes."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        if path == "/robots.txt":
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        elif path == "/redirect":
            port = writer.get_extra_info("sockname")[1]
            to = f"Location: http://127.0.0.1:{port}/secret\r\n".encode()
            writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n" + to + b"\r\n")
        elif path == "/bomb":
            coding = b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + coding + b"Content-Length: %d\r\n\r\n" % len(bomb()) + bomb())
        elif path in ("/endless", "/drip"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
            while True:
                writer.write(b"x" * (1 if path == "/drip" else 1 << 20))
                await writer.drain()
                await asyncio.sleep(0.3 if path == "/drip" else 0)
        else:
            body = PAGE if path == "/page" else SECRET.encode()
            if path == "/charset":
                body = (
                    b"<html><head><meta charset=shift_jis></head><body><p>"
                    + JAPANESE.encode("cp932")
                    + b"</p></body></html>"
                )
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()


def serving() -> int:
    """Start the server in a thread; its port."""
    ready: list[int] = []
    started = threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    started.wait()
    return ready[0]


def script_the_network(case: str, port: int) -> None:
    """Look-ups by script; what goes to the public address arrives at the local server."""
    answers = [PUBLIC, "127.0.0.1"]
    real_connect = socket.socket.connect

    def look_up(host: object, service: object, *_: object, **__: object) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        address = name
        if not name.replace(".", "").isdigit():
            address = answers.pop(0) if case == "rebinding" and len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(str(service or 80))))]

    def connect(self: socket.socket, address: Any) -> None:
        DIRECTLY.append(address[0] != PUBLIC)
        real_connect(self, ("127.0.0.1", port) if address[0] == PUBLIC else address)

    socket.getaddrinfo = look_up  # type: ignore[assignment]
    socket.gethostbyname = lambda name: look_up(name, 80)[0][4][0]
    socket.socket.connect = connect  # type: ignore[method-assign]


def ours(url: str, port: int) -> str:
    from toolkit_core.host.egress import Egress
    from toolkit_core.host.web import HostWeb
    from toolkit_core.tools import web_fetch_tool

    egress = Egress(dial=lambda address, to: asyncio.open_connection(address, to))
    tool = web_fetch_tool(HostWeb(egress=egress), timeout_seconds=8)
    return str(asyncio.run(tool(url=url)))


def mcp_server_fetch(url: str, port: int) -> str:
    from mcp_server_fetch.server import fetch_url  # type: ignore[import-not-found]

    return str(asyncio.run(fetch_url(url, "benchmark")))


def langchain_requests(url: str, port: int) -> str:
    from langchain_community.tools import RequestsGetTool  # type: ignore[import-not-found]
    from langchain_community.utilities import TextRequestsWrapper  # type: ignore[import-not-found]

    return str(RequestsGetTool(requests_wrapper=TextRequestsWrapper(), allow_dangerous_requests=True).run(url))


def llamaindex_simple(url: str, port: int) -> str:
    from llama_index.readers.web import SimpleWebPageReader  # type: ignore[import-not-found]

    return str(SimpleWebPageReader(html_to_text=False).load_data([url])[0].text)


PEERS: dict[str, tuple[str, Callable[[str, int], str]]] = {
    "web_fetch (ours)": ("", ours),
    "mcp-server-fetch": ("mcp-server-fetch", mcp_server_fetch),
    "LangChain RequestsGetTool": ("langchain-community", langchain_requests),
    "LlamaIndex SimpleWebPageReader": ("llama-index", llamaindex_simple),
}


def peak_kib() -> int:
    """The peak of this process's own memory; ru_maxrss would carry over its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


def child(peer: str, case: str, port: int) -> None:
    """One cell: fetch, and print what came of it."""
    if case not in ("loopback",):
        script_the_network(case, port)
    path = {"rebinding": "secret", "loopback": "secret"}.get(case, case)
    url = f"http://127.0.0.1:{port}/{path}" if case == "loopback" else f"http://pub.test:{port}/{path}"
    before = peak_kib()
    started = time.monotonic()
    try:
        text = PEERS[peer][1](url, port)
    except Exception as e:  # noqa: BLE001 - whatever a peer raises is its answer
        text = f"{type(e).__name__}: {e}"
    grown_mb = (peak_kib() - before) // 1024
    if case == "rebinding" and any(DIRECTLY):
        text = "LEAK"
    print(json.dumps({"text": text[:200_000], "seconds": time.monotonic() - started, "mb": grown_mb}))


def cell(python: str, peer: str, case: str, port: int) -> str:
    """What one peer does in one case, in a word or two."""
    command = [python, CHILD, "--child", peer, case, str(port)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, text=True, check=False)
        found = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return "hangs" if case == "drip" else f">{SECONDS} s"
    except (ValueError, IndexError):
        return "died"
    text = found["text"]
    if case in ("loopback", "redirect"):
        return "LEAK" if SECRET in text else "refused"
    if case == "rebinding":
        return "LEAK" if text == "LEAK" else "pinned" if SECRET in text else "refused"
    if case == "charset":
        return "right" if JAPANESE in text else "mojibake"
    return f"{found['seconds']:.1f} s, +{found['mb']} MB"


def row(python: str, peer: str, port: int) -> list[str]:
    """One peer's cells; a peer that checks nothing has no check to get round."""
    found = {case: cell(python, peer, case, port) for case in CASES}
    if found["loopback"] == "LEAK":
        found["rebinding"] = "n/a"
    return [found[case] for case in CASES]


def peers_table(port: int) -> None:
    """Print the table of facts: one row a tool, one column a danger."""
    from benchmarks.peers import Peers  # a child in a peer's environment has no such package

    print("| tool | " + " | ".join(TITLES[case] for case in CASES) + " |")
    print("|---" * (len(CASES) + 1) + "|")
    peers = Peers(install=True)
    for peer, (package, _) in PEERS.items():
        python = peers.python(package) if package else sys.executable
        cells = row(python, peer, port) if python else ["not installed", *[""] * (len(CASES) - 1)]
        print(f"| {peer} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Run everything, or one cell as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], arguments.child[1], int(arguments.child[2]))
        os._exit(0)
    peers_table(serving())


if __name__ == "__main__":
    main()
