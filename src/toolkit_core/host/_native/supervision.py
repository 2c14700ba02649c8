"""What owner, supervisor and keepers say to each other.

Two sockets lead from the owner: `work`, read by whichever keeper is idle, and `link`, read by the supervisor.
A datagram on `work` brings a command's descriptors, its channel first. The request itself, of any length,
follows on the channel; the keeper answers there with fixed records, and the owner steers it with single bytes.

Standard library only and light: the supervisor program loads this file by its path, without the package.
"""

from __future__ import annotations

import contextlib
import math
import socket
import struct
from dataclasses import dataclass

MAX_DATAGRAM_BYTES = 8192  # a scratch folder's path at most
MAX_DESCRIPTORS = 64  # far below SCM_MAX_FD (253), unix(7)

# datagrams on `work`
RUN = b"R"

# datagrams on `link`
KILL_KEEPER = b"K"  # pid
SETTLED = b"?"  # pid; the descriptor that comes with it is closed once that keeper's orphans are dead
ADD_SCRATCH = b"+"  # path
FORGET_SCRATCH = b"-"  # path
KEEPER = struct.Struct("!cI")

# single bytes on a command's channel
TERMINATE = b"T"
KILL = b"K"

# records on a command's channel
RECORD = struct.Struct("!ciiii")
TAKEN = b"T"  # pid of the keeper
STARTED = b"S"  # only where the request asks for it
FAILED = b"E"  # errno, step (CHDIR or EXEC)
DONE = b"D"  # wait status or NO_STATUS, flags, survivors killed, processes that could not be killed
CHDIR, EXEC = 1, 2
NO_STATUS = -1
TIMED_OUT, LOST = 1, 2

_HEAD = struct.Struct("!I")
_REQUEST = struct.Struct("!dd???HH")


@dataclass(frozen=True)
class Request:
    """One command.

    Attributes:
        argv: The program, an absolute path, and its arguments.
        cwd: Absolute folder.
        environment: `KEY=value`, whole.
        targets: Descriptor numbers in the command, one for each descriptor sent after the channel.
        timeout_seconds: From its start; infinite where it has none.
        grace_seconds: Between TERM and KILL.
        terminal: Descriptor 0 is a terminal that becomes its controlling one.
        spare_leader: TERM goes to what the program started, not to itself (a sandbox's own first process).
        tell_start: Answer as soon as the program has started, not only at its end.
    """

    argv: tuple[bytes, ...]
    cwd: bytes
    environment: tuple[bytes, ...]
    targets: tuple[int, ...]
    timeout_seconds: float = math.inf
    grace_seconds: float = 2.0
    terminal: bool = False
    spare_leader: bool = False
    tell_start: bool = False

    def encode(self) -> bytes:
        """The request as it goes over the channel."""
        options = self.timeout_seconds, self.grace_seconds, self.terminal, self.spare_leader, self.tell_start
        head = _REQUEST.pack(*options, len(self.targets), len(self.argv))
        numbers = struct.pack(f"!{len(self.targets)}H", *self.targets)
        body = head + numbers + b"\0".join((self.cwd, *self.argv, *self.environment))
        return _HEAD.pack(len(body)) + body

    @classmethod
    def decode(cls, body: bytes) -> Request:
        """The request of a body without its length."""
        *options, target_count, argument_count = _REQUEST.unpack_from(body)
        targets = struct.unpack_from(f"!{target_count}H", body, _REQUEST.size)
        words = body[_REQUEST.size + 2 * target_count :].split(b"\0")
        argv, environment = words[1 : 1 + argument_count], words[1 + argument_count :]
        return cls(tuple(argv), words[0], tuple(environment), targets, *options)


def receive_request(channel: socket.socket) -> Request | None:
    """The request that stands first on a channel; None when the owner is gone."""
    head = channel.recv(_HEAD.size, socket.MSG_WAITALL)
    if len(head) < _HEAD.size:
        return None
    length = int(_HEAD.unpack(head)[0])
    body = bytearray()
    while len(body) < length:
        part = channel.recv(length - len(body))
        if not part:
            return None
        body += part
    return Request.decode(bytes(body))


def tell(channel: socket.socket, kind: bytes, *numbers: int) -> None:
    """Send one record to the owner, if it is still there."""
    with contextlib.suppress(OSError):
        channel.send(RECORD.pack(kind, *numbers, *(0,) * (4 - len(numbers))))
