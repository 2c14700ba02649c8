"""The system call filter: classic BPF, assembled here for the machine that runs it.

The kernel loads an array of `struct sock_filter` (code, jump if true, jump if false, operand) and runs it over
`struct seccomp_data` (number, architecture, instruction pointer, six 64-bit arguments) before each system call:
seccomp(2), linux/filter.h, linux/seccomp.h. Arguments that the kernel reads as an int are compared by their low
32 bits, since a caller may put anything into the upper half.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

ALLOW: Final = 0x7FFF0000
KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
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
_SET_ID_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000
"""O_CREAT and the bit of O_TMPFILE that is its own, the same on both machines."""

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
        "openat2": 437,
        "mount_setattr": 442,
        "fchmodat2": 452,
        "open_tree_attr": 467,
    }
)
"""Numbers above 424 are shared by all architectures."""

NO_SUCH_CALL: Final = (
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "openat2",
)
"""Answered ENOSYS, so that programs fall back: io_uring opens sockets unseen by this filter, keyrings are not
divided by namespaces, and openat2 takes its mode from memory, which a filter cannot read."""

_MODE_ARGUMENT: Final[Mapping[str, int]] = MappingProxyType(
    {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
)
_OPEN_ARGUMENTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({"open": (1, 2), "openat": (2, 3)})
"""Where flags and mode are. A set-user-id file in the workspace is one on the host too: made by root's agent, it
would be a root shell for whoever reaches the folder there. So no file gets such a bit (EPERM)."""

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
                    "open": 2,
                    "ioctl": 16,
                    "socket": 41,
                    "socketpair": 53,
                    "creat": 85,
                    "chmod": 90,
                    "fchmod": 91,
                    "syslog": 103,
                    "mknod": 133,
                    "pivot_root": 155,
                    "mount": 165,
                    "umount2": 166,
                    "init_module": 175,
                    "delete_module": 176,
                    "kexec_load": 246,
                    "add_key": 248,
                    "request_key": 249,
                    "keyctl": 250,
                    "openat": 257,
                    "mknodat": 259,
                    "fchmodat": 268,
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
                    "mknodat": 33,
                    "umount2": 39,
                    "mount": 40,
                    "pivot_root": 41,
                    "fchmod": 52,
                    "fchmodat": 53,
                    "openat": 56,
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


def _mode_steps(numbers: Mapping[str, int]) -> list[_Step]:
    """One block for each place that a mode can be in; opening counts only when it creates."""
    steps: list[_Step] = []
    for place in sorted(set(_MODE_ARGUMENT.values())):
        steps.append(_Step(_LOAD, _low_half(place), label=f"mode{place}"))
        steps.append(_Step(_JUMP_ANY_BIT, _SET_ID_BITS, "not_permitted", "allow"))
    for name, (flags, mode) in _OPEN_ARGUMENTS.items():
        if name in numbers:
            steps.append(_Step(_LOAD, _low_half(flags), label=name))
            steps.append(_Step(_JUMP_ANY_BIT, _CREATES, "", "allow"))
            steps.append(_Step(_LOAD, _low_half(mode)))
            steps.append(_Step(_JUMP_ANY_BIT, _SET_ID_BITS, "not_permitted", "allow"))
    return steps


def _dispatch(numbers: Mapping[str, int]) -> list[_Step]:
    """Which block a call goes to; the commonest first."""
    places = {name: name for name in (*_OPEN_ARGUMENTS, "ioctl", "socket", "socketpair")}
    places.update({name: f"mode{place}" for name, place in _MODE_ARGUMENT.items()})
    places.update(dict.fromkeys(NO_SUCH_CALL, "no_call"))
    places.update(dict.fromkeys(NOT_PERMITTED, "not_permitted"))
    return [_Step(_JUMP_EQUAL, numbers[name], label) for name, label in places.items() if name in numbers]


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
    steps += [replace(step, label="" if index else "known") for index, step in enumerate(_dispatch(numbers))]
    steps.append(_Step(_RETURN, ALLOW))
    steps += _mode_steps(numbers)
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


@functools.cache
def filter_program(machine: str) -> bytes | None:
    """The filter for a machine as `platform.machine()` names it, or None where there is no table for it.

    Little-endian `struct sock_filter` records of 8 bytes, as bubblewrap's `--seccomp` reads them.
    """
    name = machine.lower()
    architecture = ARCHITECTURES.get(MACHINE_NAMES.get(name, name))
    return None if architecture is None else _assemble(_steps(architecture))
