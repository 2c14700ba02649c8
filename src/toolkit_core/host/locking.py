"""Advisory locks, so that writers in several processes take turns on one file (flock(2)).

A writer locks the very file that it opened and then looks whether the name still holds it. The file that it puts
there is its temporary one, locked from the start. So the next writer waits, whichever of the two it opened.
"""

from __future__ import annotations

import errno
import fcntl
import time
from typing import TYPE_CHECKING, Final

from toolkit_core.limits import FILE_LOCK_POLL_SECONDS, FILE_LOCK_SECONDS

if TYPE_CHECKING:
    from toolkit_core.host.hop import Stop

_HELD: Final = frozenset({errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK})


def lock_against_others(descriptor: int, stop: Stop) -> bool:
    """Lock a file until its descriptor is closed; False where another one keeps it or the filesystem has no locks.

    Raises:
        Stopped: The call was cancelled while it waited.
    """
    until = time.monotonic() + FILE_LOCK_SECONDS
    while True:
        stop.check()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno not in _HELD or time.monotonic() >= until:
                return False
            time.sleep(FILE_LOCK_POLL_SECONDS)
        else:
            return True
