"""The system call filter: classic BPF, assembled here for the machine that runs it.

The kernel loads an array of `struct sock_filter` (code, jump if true, jump if false, operand) and runs it over
`struct seccomp_data` (number, architecture, instruction pointer, six 64-bit arguments) before each system call:
seccomp(2), linux/filter.h, linux/seccomp.h. Arguments that the kernel reads as an int are compared by their low
32 bits, since a caller may put anything into the upper half.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

ALLOW: Final = 0x7FFF0000
KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_NUMBER: Final = 0
_ARCHITECTURE: Final = 4


def _low_half(argument: int) -> int:
    return 16 + 8 * argument


_X32_BIT: Final = 0x40000000
_X32_FIRST, _X32_END = 512, 548
"""Old x86-64 kernels take x32's own numbers from 64-bit callers too, ioctl and ptrace among them."""

_INET, _INET6, _NETLINK, _UNIX = 2, 10, 16, 1
_NETLINK_ROUTE: Final = 0
_STREAM, _SEQPACKET, _TYPE_MASK = 1, 5, 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_SAME_NUMBER: Mapping[str, int] = MappingProxyType(
    {
        "io_uring_setup": 425,
        "io_uring_enter": 426,
        "io_uring_register": 427,
        "open_tree": 428,
        "move_mount": 429,
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "fspick": 433,
        "mount_setattr": 442,
        "open_tree_attr": 467,
    }
)
"""Numbers above 424 are shared by all architectures."""

NO_SUCH_CALL: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key")
"""Answered ENOSYS, so that programs fall back: io_uring opens sockets unseen by this filter, and keyrings are
not divided by namespaces."""

NOT_PERMITTED: Final = (
    "mount",
    "umount2",
    "pivot_root",
    "open_tree",
    "open_tree_attr",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setns",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "open_by_handle_at",
    "syslog",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
)
"""Answered EPERM. Most need a capability that the sandbox lacks anyway: this is the second lock."""


@dataclass(frozen=True)
class Architecture:
    """What differs between machines: the audit number and the system call numbers (asm/unistd.h)."""

    audit: int
    numbers: Mapping[str, int]
    x32: bool = False


ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {
        "x86_64": Architecture(
            audit=0xC000003E,
            x32=True,
            numbers=MappingProxyType(
                {
                    "ioctl": 16,
                    "socket": 41,
                    "socketpair": 53,
                    "syslog": 103,
                    "pivot_root": 155,
                    "mount": 165,
                    "umount2": 166,
                    "init_module": 175,
                    "delete_module": 176,
                    "kexec_load": 246,
                    "add_key": 248,
                    "request_key": 249,
                    "keyctl": 250,
                    "perf_event_open": 298,
                    "open_by_handle_at": 304,
                    "setns": 308,
                    "finit_module": 313,
                    "kexec_file_load": 320,
                    "bpf": 321,
                    "userfaultfd": 323,
                    **_SAME_NUMBER,
                }
            ),
        ),
        "aarch64": Architecture(
            audit=0xC00000B7,
            numbers=MappingProxyType(
                {
                    "ioctl": 29,
                    "umount2": 39,
                    "mount": 40,
                    "pivot_root": 41,
                    "kexec_load": 104,
                    "init_module": 105,
                    "delete_module": 106,
                    "syslog": 116,
                    "socket": 198,
                    "socketpair": 199,
                    "add_key": 217,
                    "request_key": 218,
                    "keyctl": 219,
                    "perf_event_open": 241,
                    "open_by_handle_at": 265,
                    "setns": 268,
                    "finit_module": 273,
                    "bpf": 280,
                    "userfaultfd": 282,
                    "kexec_file_load": 294,
                    **_SAME_NUMBER,
                }
            ),
        ),
    }
)
MACHINE_NAMES: Final[Mapping[str, str]] = MappingProxyType({"amd64": "x86_64", "arm64": "aarch64"})


@dataclass(frozen=True)
class _Step:
    """One instruction whose jumps name labels; an empty label means the next instruction."""

    code: int
    operand: int
    if_true: str = ""
    if_false: str = ""
    label: str = ""


def _refuse(label: str, error: int) -> _Step:
    return _Step(_RETURN, _ERRNO | error, label=label)


def _socket_steps() -> list[_Step]:
    return [
        _Step(_LOAD, _low_half(0), label="socket"),
        _Step(_JUMP_EQUAL, _INET, "allow"),
        _Step(_JUMP_EQUAL, _INET6, "allow"),
        _Step(_JUMP_EQUAL, _NETLINK, "", "no_family"),
        _Step(_LOAD, _low_half(2)),
        _Step(_JUMP_EQUAL, _NETLINK_ROUTE, "allow", "no_family"),
        # A datagram pair can be sent or connected to any path: only connected kinds may exist.
        _Step(_LOAD, _low_half(0), label="socketpair"),
        _Step(_JUMP_EQUAL, _UNIX, "", "no_family"),
        _Step(_LOAD, _low_half(1)),
        _Step(_AND, _TYPE_MASK),
        _Step(_JUMP_EQUAL, _STREAM, "allow"),
        _Step(_JUMP_EQUAL, _SEQPACKET, "allow", "no_family"),
    ]


def _steps(architecture: Architecture) -> list[_Step]:
    numbers = architecture.numbers
    steps = [
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_JUMP_EQUAL, architecture.audit, "", "kill"),
        _Step(_LOAD, _NUMBER),
    ]
    if architecture.x32:
        steps += [
            _Step(_JUMP_AT_LEAST, _X32_BIT, "no_call"),
            _Step(_JUMP_AT_LEAST, _X32_END, "known"),
            _Step(_JUMP_AT_LEAST, _X32_FIRST, "no_call"),
        ]
    steps.append(_Step(_JUMP_EQUAL, numbers["socket"], "socket", label="known"))
    steps.append(_Step(_JUMP_EQUAL, numbers["socketpair"], "socketpair"))
    steps.append(_Step(_JUMP_EQUAL, numbers["ioctl"], "ioctl"))
    steps += [_Step(_JUMP_EQUAL, numbers[name], "no_call") for name in NO_SUCH_CALL]
    steps += [_Step(_JUMP_EQUAL, numbers[name], "not_permitted") for name in NOT_PERMITTED]
    steps.append(_Step(_RETURN, ALLOW))
    steps += _socket_steps()
    return [
        *steps,
        _Step(_LOAD, _low_half(1), label="ioctl"),
        _Step(_JUMP_EQUAL, _TIOCSTI, "not_permitted"),
        _Step(_JUMP_EQUAL, _TIOCLINUX, "not_permitted"),
        _Step(_RETURN, ALLOW, label="allow"),
        _refuse("no_family", errno.EAFNOSUPPORT),
        _refuse("no_call", errno.ENOSYS),
        _refuse("not_permitted", errno.EPERM),
        _Step(_RETURN, KILL_PROCESS, label="kill"),
    ]


def _assemble(steps: Sequence[_Step]) -> bytes:
    places = {step.label: index for index, step in enumerate(steps) if step.label}

    def distance(label: str, index: int) -> int:
        return places[label] - index - 1 if label else 0

    return b"".join(
        struct.pack(
            "<HBBI", step.code, distance(step.if_true, index), distance(step.if_false, index), step.operand & 0xFFFFFFFF
        )
        for index, step in enumerate(steps)
    )


def filter_program(machine: str) -> bytes | None:
    """The filter for a machine as `platform.machine()` names it, or None where there is no table for it.

    Little-endian `struct sock_filter` records of 8 bytes, as bubblewrap's `--seccomp` reads them.
    """
    name = machine.lower()
    architecture = ARCHITECTURES.get(MACHINE_NAMES.get(name, name))
    return None if architecture is None else _assemble(_steps(architecture))
