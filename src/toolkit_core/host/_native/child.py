"""One child process in a group of its own: started inside Landlock where there is one, streamed, killed, reaped.

For the search's helpers, which start nothing themselves. All methods but `kill` belong to the thread that reads.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from toolkit_core.host._native.confined_reads import confine_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_BLOCK_BYTES = 262_144
_PIPE_BYTES = 1_048_576  # /proc/sys/fs/pipe-max-size, what anybody may ask for
_EAGER_READS = 8
_PAUSE_SECONDS = 0.003  # lets output gather: a wake-up for each of a thousand small writes would slow the child
_EXIT_SECONDS = 1.0  # between the end of its output and its own end


class Child:
    """A running child.

    Args:
        argv: Its program, an absolute path, and arguments.
        cwd: Its folder; `/proc/self/fd/N` is taken in the child, where the descriptors are the same.
        environment: Whole.
        keep: Descriptors it inherits under their numbers.
        readable: Confine it to these descriptors' places; None leaves it free.
        stdin: A descriptor; closed after the start.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        keep: Sequence[int] = (),
        readable: Sequence[int] | None = None,
        stdin: int,
    ) -> None:
        self._lock = threading.Lock()

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 - a program found by absolute path, no shell
                list(argv),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=dict(environment),
                pass_fds=tuple(keep),
                start_new_session=True,
                pipesize=_PIPE_BYTES,
            )

        self._process = start() if readable is None else _in_confined_thread(start, readable, argv[0])

    def stream(
        self, on_output: Callable[[bytes], bool], *, deadline: float, complaint_bytes: int
    ) -> tuple[int | None, bytes]:
        """Hand over its output block by block until it ends, `on_output` says False, or time is up; then reap it.

        Args:
            on_output: Takes a block; False kills the child.
            deadline: On the clock of `time.monotonic`.
            complaint_bytes: What is kept of stderr; the rest is read and dropped.

        Returns:
            Its exit status (negative: the signal), None when it was killed here; and its stderr.
        """
        stopped = False
        complaints = bytearray()
        try:
            stopped = not self._drain(on_output, complaints, deadline, complaint_bytes)
        finally:
            status = self.reap(at_once=stopped)
        return (None if stopped else status), bytes(complaints)

    def _drain(self, on_output: Callable[[bytes], bool], complaints: bytearray, deadline: float, keep: int) -> bool:
        out, err = _descriptor(self._process.stdout), _descriptor(self._process.stderr)
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(err, select.POLLIN)
        waiting, reads = 2, 0
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for descriptor, _ in poll.poll(1000 * left):
                block = os.read(descriptor, _BLOCK_BYTES)
                if not block:
                    poll.unregister(descriptor)
                    waiting -= 1
                elif descriptor == err:
                    complaints += block[: max(0, keep - len(complaints))]
                elif not on_output(block):
                    return False
            reads += 1
            if reads > _EAGER_READS:
                time.sleep(_PAUSE_SECONDS)
        return True

    def reap(self, *, at_once: bool) -> int:
        """Wait for its end, killing it first or when it lingers; afterwards nothing of it is left."""
        process = self._process
        if not at_once:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._await_end(_EXIT_SECONDS)
        self.kill()
        with self._lock:
            status = process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        return status

    def _await_end(self, seconds: float) -> None:
        """Until it has ended, not yet reaped, so that `kill` from another thread cannot hit a stranger."""
        if not hasattr(os, "waitid"):
            self._process.wait(seconds)
            return
        end = time.monotonic() + seconds
        pause = 0.0002
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while os.waitid(os.P_PID, self._process.pid, flags) is None and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def kill(self) -> None:
        """SIGKILL for its whole group; harmless when it has ended. May be called from any thread, never waits."""
        if not self._lock.acquire(blocking=False):
            return  # it is being killed or reaped at this moment
        try:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        finally:
            self._lock.release()


def _descriptor(pipe: object) -> int:
    assert isinstance(pipe, io.BufferedReader)  # noqa: S101 - for the type checker: both streams are pipes
    return pipe.fileno()


def _in_confined_thread(
    start: Callable[[], subprocess.Popen[bytes]], readable: Sequence[int], program: str
) -> subprocess.Popen[bytes]:
    outcome: list[subprocess.Popen[bytes] | BaseException] = []

    def body() -> None:
        try:
            confine_thread(readable, program)
            outcome.append(start())
        except BaseException as e:  # noqa: BLE001 - raised again by the thread that waits
            outcome.append(e)

    thread = threading.Thread(target=body, name="toolkit-confined-start")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
