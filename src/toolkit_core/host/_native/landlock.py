"""Landlock: writes only below given folders, from here on, for this process and all that it starts.

Standard library only and importing nothing of this package: the sandbox runs this file's text as a program
inside, where no package may be reachable. Primary source: landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same on every architecture."""
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_WRITE_FILE = 1 << 1
_REFER = 1 << 13
_TRUNCATE = 1 << 14

NEEDED_ABI = 2
"""Linux 5.19: from there on renaming between folders can be allowed again."""
_TRUNCATE_ABI = 3


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = int(library.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def abi() -> int:
    """The version of Landlock that the kernel has enabled; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def restrict_writes(folders: list[str]) -> None:
    """Refuse opening anything for writing, FIFOs and sockets' files included, outside of `folders`.

    Irrevocable, and inherited. Raises OSError where the kernel has no Landlock of version 2.
    """
    version = abi()
    if version < NEEDED_ABI:
        raise OSError(f"the kernel offers Landlock version {version}; {NEEDED_ABI} is needed")
    handled = _WRITE_FILE | _REFER | (_TRUNCATE if version >= _TRUNCATE_ABI else 0)
    attributes = _RulesetAttributes(handled)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    for folder in folders:
        parent = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        # REFER is for folders alone: a rule on a file may not name it.
        allowed = handled if os.path.isdir(folder) else handled & ~_REFER
        rule = _PathBeneath(allowed, parent)
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(parent)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _main(arguments: list[str]) -> None:
    """`FOLDER... -- PROGRAM ARGUMENT...`: restrict, then become the program."""
    end = arguments.index("--")
    restrict_writes(arguments[:end])
    for name in ("SIGPIPE", "SIGXFSZ"):
        # Python ignores them, and what is ignored stays so across exec.
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execvp(arguments[end + 1], arguments[end + 1 :])  # noqa: S606 - the confined program itself


if __name__ == "__main__":
    _main(sys.argv[1:])
