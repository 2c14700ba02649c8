"""The system call filter, run by an interpreter of classic BPF written here from its manual."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import require
from toolkit_core.host.bubblewrap.seccomp import (
    ALLOW,
    ARCHITECTURES,
    KILL_PROCESS,
    NO_SUCH_CALL,
    NOT_PERMITTED,
    filter_program,
)

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
MACHINES = sorted(ARCHITECTURES)
UPPER_HALF = 0xDEAD_BEEF << 32


def run(program: bytes, *, audit: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the filter returns for one system call (linux/seccomp.h, struct seccomp_data, little-endian)."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *[a & 0xFFFFFFFFFFFFFFFF for a in padded])
    steps = list(struct.iter_unpack("<HBBI", program))
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == LOAD:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == AND:
            accumulator &= operand
        elif code == JUMP_EQUAL:
            at += if_true if accumulator == operand else if_false
        elif code == JUMP_AT_LEAST:
            at += if_true if accumulator >= operand else if_false
        elif code == JUMP_ANY_BIT:
            at += if_true if accumulator & operand else if_false
        elif code == RETURN:
            return operand
        else:
            raise AssertionError(f"an instruction that the kernel would refuse: {code:#x}")


def verdict(machine: str, name: str | int, *arguments: int, audit: int | None = None) -> str:
    architecture = ARCHITECTURES[machine]
    program = filter_program(machine)
    assert program is not None
    number = name if isinstance(name, int) else architecture.numbers[name]
    result = run(program, audit=audit or architecture.audit, number=number, arguments=arguments)
    if result == ALLOW:
        return "allow"
    return "kill" if result == KILL_PROCESS else errno.errorcode[result & 0xFFFF]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_instruction_is_one_that_the_kernel_takes_and_no_jump_leaves_the_program(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    steps = list(struct.iter_unpack("<HBBI", program))
    assert len(steps) <= 4096  # BPF_MAXINSNS
    for index, (code, if_true, if_false, _) in enumerate(steps):
        assert code in {LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN}
        if code in {JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT}:
            assert index + 1 + max(if_true, if_false) < len(steps)
    assert steps[-1][0] == RETURN


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("family", "protocol", "expected"),
    [
        (2, 0, "allow"),
        (10, 6, "allow"),
        (16, 0, "allow"),  # NETLINK_ROUTE, which getifaddrs needs
        (16, 4, "EAFNOSUPPORT"),  # NETLINK_SOCK_DIAG lists the host's sockets
        (16, UPPER_HALF | 4, "EAFNOSUPPORT"),
        (1, 0, "EAFNOSUPPORT"),
        (UPPER_HALF | 1, 0, "EAFNOSUPPORT"),  # the kernel reads an int: 0x1_0000_0001 is AF_UNIX
        (0x1_0000_0001, 0, "EAFNOSUPPORT"),
        (UPPER_HALF | 2, 0, "allow"),
        (38, 0, "EAFNOSUPPORT"),  # AF_ALG
        (40, 0, "EAFNOSUPPORT"),  # AF_VSOCK
        (17, 0, "EAFNOSUPPORT"),  # AF_PACKET
    ],
)
def test_only_internet_and_route_sockets_open(machine: str, family: int, protocol: int, expected: str) -> None:
    assert verdict(machine, "socket", family, 1, protocol) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flags", [0, 0o2000000, 0o4000, 0o2004000])
@pytest.mark.parametrize(
    ("kind", "expected"), [(1, "allow"), (5, "allow"), (2, "EAFNOSUPPORT"), (3, "EAFNOSUPPORT"), (0, "EAFNOSUPPORT")]
)
def test_only_connected_socket_pairs_exist(machine: str, flags: int, kind: int, expected: str) -> None:
    assert verdict(machine, "socketpair", 1, kind | flags) == expected
    assert verdict(machine, "socketpair", UPPER_HALF | 1, UPPER_HALF | kind | flags) == expected
    assert verdict(machine, "socketpair", 30, kind | flags) == "EAFNOSUPPORT"  # AF_TIPC makes pairs too


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_would_slip_past_or_undo_the_sandbox_are_refused(machine: str) -> None:
    assert {name: verdict(machine, name) for name in NO_SUCH_CALL} == dict.fromkeys(NO_SUCH_CALL, "ENOSYS")
    assert {name: verdict(machine, name) for name in NOT_PERMITTED} == dict.fromkeys(NOT_PERMITTED, "EPERM")


@pytest.mark.parametrize("machine", MACHINES)
def test_typing_into_a_terminal_is_refused_whatever_the_upper_half_holds(machine: str) -> None:
    for request in (0x5412, 0x541C):
        assert verdict(machine, "ioctl", 0, request) == "EPERM"
        assert verdict(machine, "ioctl", 0, UPPER_HALF | request) == "EPERM"
    assert verdict(machine, "ioctl", 0, 0x5413) == "allow"  # TIOCGWINSZ


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bits", [0o4000, 0o2000, 0o6000])
def test_no_file_gets_a_set_id_bit(machine: str, bits: int) -> None:
    numbers = ARCHITECTURES[machine].numbers
    places = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
    for name in places.keys() & numbers.keys():
        arguments = [0] * places[name]
        assert verdict(machine, name, *arguments, UPPER_HALF | bits | 0o755) == "EPERM"
        assert verdict(machine, name, *arguments, 0o1777) == "allow"
    for name, before in {"open": [0], "openat": [0, 0]}.items():
        if name in numbers:
            assert verdict(machine, name, *before, 0o101, bits | 0o755) == "EPERM"
            assert verdict(machine, name, *before, 0o20200000, bits) == "EPERM"  # O_TMPFILE
            assert verdict(machine, name, *before, 0o101, 0o644) == "allow"
            assert verdict(machine, name, *before, 0, bits) == "allow"  # creates nothing: the mode is not looked at


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    for audit in (0x40000003, 0x40000028, 0xC000003E, 0xC00000B7):  # i386, arm, x86-64, aarch64
        expected = "allow" if audit == ARCHITECTURES[machine].audit else "kill"
        assert verdict(machine, 1_000_000, audit=audit) == expected


def test_x32_numbers_do_not_exist() -> None:
    assert verdict("x86_64", 0x40000000 | 41, 1, 1) == "ENOSYS"
    assert verdict("x86_64", 0xFFFFFFFF) == "ENOSYS"
    assert [verdict("x86_64", number) for number in (511, 512, 514, 547, 548)] == [
        "allow",
        "ENOSYS",
        "ENOSYS",
        "ENOSYS",
        "allow",
    ]


@given(machine=st.sampled_from(MACHINES), number=st.integers(0, 511), first=st.integers(0, 2**64 - 1))
def test_what_is_not_named_is_allowed(machine: str, number: int, first: int) -> None:
    named = set(ARCHITECTURES[machine].numbers.values())
    assert number in named or verdict(machine, number, first) == "allow"


def test_there_is_no_filter_for_a_machine_without_a_table() -> None:
    assert filter_program("riscv64") is None
    assert filter_program("i686") is None
    assert filter_program("arm64") == filter_program("aarch64")
    assert filter_program("AMD64") == filter_program("x86_64")


@pytest.mark.parametrize(
    ("machine", "headers"),
    [
        ("x86_64", ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")),
        ("aarch64", ("/usr/include/asm-generic/unistd.h",)),
    ],
)
def test_the_numbers_are_those_of_the_kernel_headers(machine: str, headers: tuple[str, ...]) -> None:
    header = next((Path(path) for path in headers if Path(path).exists()), None)
    require(header is not None, f"kernel headers for {machine} (linux-libc-dev)")
    assert header is not None
    found = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text())}
    ours = ARCHITECTURES[machine].numbers
    assert {name: found[name] for name in ours if name in found} == {
        name: number for name, number in ours.items() if name in found
    }
    assert len(set(ours) & set(found)) >= len(ours) - 2  # the last two are newer than most headers
