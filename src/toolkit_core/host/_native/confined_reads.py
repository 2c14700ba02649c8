"""A child process that can read the searched folder and nothing else: Landlock around its start (landlock(7)).

The rules bind the thread that asks for them and every child it starts from then on. So a child is started from
a thread of its own, which ends with that; the rest of the process stays as free as it was.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_HANDLED = _EXECUTE | _READ_FILE | _READ_DIR
"""Reading alone: every further right that is handled costs time at each open, and the programs write nothing."""

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """The kernel's Landlock version, 0 where it has none or forbids it."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64", "riscv64"):
        return 0
    return max(0, _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def confine_thread(readable: Sequence[int], program: str) -> None:
    """Let this thread, and what it starts, read these descriptors' folders and files and run `program`.

    It can read and run nothing else but the system's libraries.

    Raises:
        OSError: The kernel refuses; the thread must then not be used.
    """
    libc = _libc()
    attributes = _RulesetAttributes(_HANDLED)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0)))
    try:
        for descriptor in readable:
            _allow(ruleset, descriptor, _READ_FILE | _READ_DIR)
        for path in (program, *_LIBRARIES):
            _allow_path(ruleset, path)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, *(ctypes.c_ulong(n) for n in (1, 0, 0, 0))))
        _checked(libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _allow_path(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _allow(ruleset, descriptor, _READ_FILE | _READ_DIR | _EXECUTE)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, descriptor: int, access: int) -> None:
    if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
        access &= ~_READ_DIR
    rule = _PathBeneath(access, descriptor)
    call = (ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    _checked(_libc().syscall(_ADD_RULE, *call))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(value: int) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value
