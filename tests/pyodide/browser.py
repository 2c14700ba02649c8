"""A page in Chromium: a module worker loads the wheel from a server on this machine and runs tools in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.pyodide import building

_SECONDS = 240


class _Site(SimpleHTTPRequestHandler):
    """The page's files; keeps what the page says."""

    said: list[str]
    heard: threading.Event

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length", 0)), 1_000_000)
        self.server.said.append(self.rfile.read(length).decode())  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()
        self.server.heard.set()  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  (silent)
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.heard = threading.Event()
        super().__init__(("127.0.0.1", 0), partial(_Site, directory=str(folder)))


def chromium() -> str:
    """The browser's program."""
    named = os.environ.get("TOOLKIT_BROWSER")
    for name in (named, "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
    raise building.MissingError("no Chromium for the page")


def in_a_page(pyodide: Path, wheels: list[Path]) -> str:
    """Open the page and judge what its worker found. AssertionError where it found something else."""
    program = chromium()
    with tempfile.TemporaryDirectory() as name:
        site = Path(name, "site")
        _lay_out(site, pyodide, [wheel for wheel in wheels if not wheel.name.startswith(("pytest", "pygments"))])
        said = _spoken(program, site, Path(name, "profile"))
    assert said.get("file") == "two = 1\r\n", said
    assert said["rows"] == [{"path": "a.py", "line": 1, "text": "one = 1", "context": False}], said
    assert "+two = 1" in said["diff"], said
    return "Chromium: a module worker edited a file and found a line, over ports in memory"


def _lay_out(site: Path, pyodide: Path, wheels: list[Path]) -> None:
    here = Path(__file__).parent
    (site / "wheels").mkdir(parents=True)
    shutil.copytree(pyodide, site / "pyodide")
    shutil.copy(here / "worker.mjs", site)
    shutil.copy(here / "page.html", site / "index.html")
    for wheel in wheels:
        shutil.copy(wheel, site / "wheels")
    (site / "wheels.json").write_text(json.dumps([wheel.name for wheel in wheels]))


def _spoken(program: str, site: Path, profile: Path) -> dict[str, Any]:
    server = _Server(site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
    flags += ["--remote-debugging-port=0", "--disable-background-networking", "--disable-component-update"]
    browser = subprocess.Popen(
        [program, *flags, f"http://127.0.0.1:{server.server_port}/"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert server.heard.wait(_SECONDS), "the page said nothing"
    finally:
        browser.terminate()
        try:
            browser.wait(20)
        except subprocess.TimeoutExpired:
            browser.kill()
            browser.wait(20)
        server.shutdown()
        server.server_close()
        thread.join(20)
    return json.loads(server.said[0])
