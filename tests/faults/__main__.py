"""`python -m tests.faults [OPERATION ...]`: every system call of the host's adapters fails once. Linux, needs strace.

A first run of an operation is traced (strace(1)); then each of its calls that can fail is made to, by strace's fault
injection, one run a call and errno. After each the tool must have answered with an error of its kind, or with the
truth; the files are the old ones or the new ones; no descriptor, child or temporary is left. The report says for
each call that was recorded whether it was made to fail, and if not, why. It lies in .faults/report.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.faults.operations import OLD, ON_THE_LOOP, OPERATIONS
from toolkit_core.host.folders import TEMPORARY_PREFIX

KEPT = Path(__file__).resolve().parents[2] / ".faults"

ERRNOS = {
    "openat": ("EIO", "EMFILE", "EACCES"),
    "write": ("EIO", "ENOSPC"),
    "writev": ("EIO", "ENOSPC"),
    "mkdirat": ("EIO", "ENOSPC"),
    "linkat": ("EIO", "EPERM"),
    "renameat2": ("EIO", "EINVAL"),
    "pipe2": ("EMFILE",),
    "memfd_create": ("EMFILE",),
    "socketpair": ("EMFILE",),
    "dup": ("EMFILE",),
    "fcntl": ("EMFILE",),
    "clone": ("EAGAIN",),
    "clone3": ("EAGAIN",),
    "vfork": ("EAGAIN",),
    "fork": ("EAGAIN",),
    "poll": ("ENOMEM",),
}
OTHERS = ("EIO",)
NOT_INJECTED = {
    "close": "the kernel lets go of a descriptor even where close fails, which strace cannot imitate; "
    "tests/core/host/test_files_injected.py does",
    "mmap munmap mprotect madvise mremap brk": "memory of the interpreter",
    "futex sched_yield rt_sigaction rt_sigprocmask sigaltstack rseq set_robust_list": "locks and signals of Python",
    "getpid gettid getuid geteuid getgid getegid getsid getppid getresuid getresgid getgroups clock_gettime "
    "clock_nanosleep gettimeofday getrandom uname sched_getaffinity restart_syscall": "cannot fail for these arguments",
    "ioctl": "Python asks each new file whether it is a terminal, and takes a refusal for no",
    "wait4 waitid kill tgkill exit": "cannot fail for a child of one's own",
    "epoll_wait epoll_ctl epoll_create1 recvfrom": "asyncio's own loop, which ends with them",
    "sendto": "wakes asyncio's loop; without it no answer could come",
    "getsockname getpeername getsockopt setsockopt": "asyncio asks what a socket is, and takes no for an answer",
}
NOT_INJECTED_THERE = {
    r"^readv?\(\d+<(pipe|UNIX|socket)": "what a process of our own writes, which can end and not fail (pipe(7))"
}
_REASONS = {name: reason for names, reason in NOT_INJECTED.items() for name in names.split()}
_CALL = re.compile(r"^([a-z_0-9]+)\(")
ANSWERS = frozenset(
    {"exhausted", "io_error", "network_error", "access_denied", "stale_file", "not_found", "unavailable"}
)
TOLD = ("could not be read", "[Matched with Python's re.]", "clean-up failed", "could NOT be moved away")
"""What an answer says that is the truth although something failed."""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"a page\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base has it so
        pass


@dataclass
class Report:
    """Of one operation."""

    operation: str
    recorded: int = 0
    injected: int = 0
    runs: int = 0
    not_injected: dict[str, int] = field(default_factory=dict[str, int])
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    went_well: list[str] = field(default_factory=list[str])
    findings: list[str] = field(default_factory=list[str])


class Operator:
    """The process that does the operations; a new one after each that went wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.operations"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.threads: dict[str, int] = self._read()
        for name in OPERATIONS:  # what is imported late is imported now
            self.run(name)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def run(self, name: str, tracing: list[str] | None = None) -> dict[str, Any] | None:
        """One operation in a fresh folder, traced where asked for; None where the process died or hung."""
        self._number += 1
        place = self._folder / str(self._number)
        tracer = None if tracing is None else self._attach(name, tracing)
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps([name, str(place)]) + "\n")
            self._process.stdin.flush()
            return self._read()
        finally:
            if tracer is not None:
                tracer.terminate()
                tracer.wait()
            shutil.rmtree(place, ignore_errors=True)

    def _attach(self, name: str, options: list[str]) -> subprocess.Popen[bytes]:
        thread = self.threads["loop" if name in ON_THE_LOOP else "worker"]
        tracer = subprocess.Popen(["strace", "-y", "-p", str(thread), *options], stderr=subprocess.DEVNULL)
        status = Path(f"/proc/{thread}/status")
        until = time.monotonic() + 10
        while f"TracerPid:\t{tracer.pid}" not in status.read_text():
            if tracer.poll() is not None or time.monotonic() > until:
                raise SystemExit("strace cannot attach to a process of its own user here (ptrace(2))")
            time.sleep(0.002)
        return tracer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def restart(self) -> None:
        """A new process."""
        self.end()
        self._start()


def recorded(trace: str) -> list[tuple[str, int, str]]:
    """The calls between the marks: name, number among those of its name since the tracer came, why it is spared."""
    calls: list[tuple[str, int, str]] = []
    counts, marks = Counter[str](), 0
    for line in trace.splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        name = found[1]
        counts[name] += 1
        if name == "getsid":
            marks += 1
        there = next((why for what, why in NOT_INJECTED_THERE.items() if re.match(what, line)), "")
        calls.append((name, counts[name], _REASONS.get(name, there)))
    if not marks:  # made by another thread
        return calls
    inside = [index for index, (name, *_) in enumerate(calls) if name == "getsid"]
    return calls[inside[0] + 1 : inside[-1]]


def examine(operation: str, operator: Operator, folder: Path) -> Report:
    """All calls of one operation."""
    report = Report(operation)
    trace = folder / "trace"
    baseline = operator.run(operation, ["-o", str(trace)])
    assert baseline is not None
    assert not baseline["code"], baseline
    calls = recorded(trace.read_text())
    report.recorded = len(calls)
    for name, number, spared in calls:
        if spared:
            report.not_injected[spared] = report.not_injected.get(spared, 0) + 1
            continue
        report.injected += 1
        for errno in ERRNOS.get(name, OTHERS):
            report.runs += 1
            fault = f"inject={name}:error={errno}:when={number}"
            answer = operator.run(operation, ["-o", str(trace), "-e", fault])
            line = injected_line(trace.read_text())
            wrong = judged(answer, baseline, name) if line or answer is None else ""
            outcome = "found" if wrong else "not made again" if not line else (answer or {})["code"] or "went well"
            report.outcomes[outcome] = report.outcomes.get(outcome, 0) + 1
            if wrong:
                report.findings.append(f"{errno} of {line}: {wrong}")
                operator.restart()
            elif outcome == "went well":
                report.went_well.append(f"{errno} of {line}")
    return report


def injected_line(trace: str) -> str:
    """The call that was made to fail, as strace shows it; "" where it was none of the operation's in this run."""
    before, found, after = trace.partition("(INJECTED)")
    marks = before.count("\ngetsid("), after.count("\ngetsid(")
    return before.rpartition("\n")[2].partition(" = ")[0] if found and marks in ((0, 0), (1, 1)) else ""


def judged(answer: dict[str, Any] | None, baseline: dict[str, Any], call: str) -> str:
    """What is wrong with an answer; "" where nothing is."""
    if answer is None:
        return "the process died"
    code, text, kept = answer["code"], answer["text"], answer["kept"]
    if call == "unlinkat":  # what cannot be removed stays; the file's next write removes it
        kept = {name: content for name, content in kept.items() if TEMPORARY_PREFIX not in name}
    if code and code not in ANSWERS:
        return f"{code}: {text}"
    if not code and text != baseline["text"] and not any(told in text for told in TOLD):
        return f"another answer: {text!r}"
    if any(kept.get(name) not in (baseline["kept"].get(name), OLD if name == "a.txt" else None) for name in kept):
        return f"files are neither old nor new: {kept}"
    if not code and kept != baseline["kept"]:
        return f"false success: {kept}"
    if answer["descriptors"] > 0 or answer["children"]:
        return f"{answer['descriptors']} descriptors and {answer['children']} processes are left"
    return ""


def main() -> int:
    """Run what is asked for; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help=", ".join(OPERATIONS))
    options = parser.parse_args()
    if shutil.which("strace") is None:
        raise SystemExit("strace is needed: apt-get install strace")
    KEPT.mkdir(exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["TOOLKIT_FAULTS_PAGE"] = f"http://127.0.0.1:{server.server_port}/page.txt"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        operator = Operator(folder)
        try:
            reports = [examine(name, operator, folder) for name in options.operations or OPERATIONS]
        finally:
            operator.end()
    for report in reports:
        sys.stdout.write(
            f"{report.operation}: {report.recorded} calls, {report.injected} made to fail in {report.runs} runs\n"
        )
        sys.stdout.write(f"  outcomes: {report.outcomes}\n")
        for reason, number in report.not_injected.items():
            sys.stdout.write(f"  {number} not made to fail: {reason}\n")
        for line in report.went_well:
            sys.stdout.write(f"  went well: {line}\n")
        for finding in report.findings:
            sys.stdout.write(f"  FOUND {finding}\n")
    (KEPT / "report.json").write_text(json.dumps([asdict(report) for report in reports], indent=1) + "\n")
    return int(any(report.findings for report in reports))


if __name__ == "__main__":
    sys.exit(main())
