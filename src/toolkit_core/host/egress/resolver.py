"""Looking names up without letting a blocked look-up hold anything but one thread of a bounded number."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence

from toolkit_core.limits import WEB_RESOLVER_THREADS

Resolver = Callable[[str], Awaitable[Sequence[str]] | Sequence[str]]
"""Takes a host name, gives its addresses as text, at once or awaited. Raises OSError where there are none."""

_POLL_SECONDS = 0.02


class SystemResolver:
    """getaddrinfo(3) in daemon threads, at most `max_threads` at once.

    A look-up cannot be stopped: cancelled, it goes on in its thread until the system gives up, and its
    answer is dropped. Daemon threads, so that such a one does not hold up the interpreter's exit.
    """

    def __init__(self, *, max_threads: int = WEB_RESOLVER_THREADS) -> None:
        self._free = threading.BoundedSemaphore(max_threads)

    async def __call__(self, host: str) -> Sequence[str]:
        """The addresses of a name, in the order of the system's preference (RFC 6724)."""
        # polled: the number is shared by several event loops, which no asyncio primitive is
        while not self._free.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await asyncio.sleep(_POLL_SECONDS)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()
        thread = threading.Thread(target=self._look_up, args=(host, loop, answer), daemon=True, name="toolkit-resolver")
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads
            self._free.release()
            raise OSError("no thread for the look-up") from None
        return await answer

    def _look_up(self, host: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Sequence[str]]) -> None:
        found: Sequence[str] = ()
        error: Exception | None = None
        try:
            rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = tuple(dict.fromkeys(_text(row[4]) for row in rows))
        except (OSError, UnicodeError) as e:
            error = e
        finally:
            self._free.release()
        try:
            loop.call_soon_threadsafe(_settle, answer, found, error)
        except RuntimeError:  # the loop has closed: nobody waits any more
            return


def _text(address: tuple[object, ...]) -> str:
    """The address with its zone, so that a zone is seen and refused."""
    zone = f"%{address[3]}" if len(address) == 4 and address[3] and "%" not in str(address[0]) else ""
    return f"{address[0]}{zone}"


def _settle(answer: asyncio.Future[Sequence[str]], found: Sequence[str], error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
