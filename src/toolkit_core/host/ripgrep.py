"""ripgrep as a child process: where it is found, what it is told, what its complaints mean.

The one beside the Python that runs is taken first: it is the version that the distribution `ripgrep` pins; else
one on PATH (absolute entries only). https://github.com/BurntSushi/ripgrep/blob/14.1.0/GUIDE.md
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host._native.child import Child
from toolkit_core.host._native.confined_reads import landlock_version
from toolkit_core.host.judged import descriptor_path
from toolkit_core.host.stoppable import Stop, StoppedError
from toolkit_core.limits import SEARCH_STDERR_BYTES
from toolkit_core.line_ends import across_any_line_end, speaks_of_cr

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from toolkit_core.glob_pattern import GlobPattern, Part
    from toolkit_core.host.search_place import Place
    from toolkit_core.ignore_rules import IgnoreScope, Rule
    from toolkit_core.ports.search import GrepMode, GrepQuery

_RULES: Final = (
    # Nothing outside the root decides what is found: no configuration, no ignore file but .gitignore inside it.
    *("--no-config", "--no-require-git", "--no-ignore-global", "--no-ignore-parent", "--no-ignore-dot"),
    *("--no-ignore-exclude", "--no-ignore-messages", "--hidden", "--no-follow", "--color=never"),
    # A file that is cut short while it is mapped would kill the process (SIGBUS, mmap(2)).
    "--no-mmap",
)
_ENVIRONMENT: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_MODES: Final[dict[GrepMode, tuple[str, ...]]] = {
    "content": ("--column",),
    "files_with_matches": ("--max-count=1", "--max-columns=1"),
    "count": ("--max-columns=1",),
}
"""All modes read rows, so that they agree: ripgrep's own counts leave a file out whose NUL comes late, and count
matches, not lines, where these may span lines. Without the mode content the text of a row is of no use."""
_ROWS: Final = ("--null", "--no-heading", "--with-filename", "--line-number", r"--field-match-separator=\x00")
_PLAIN_CHARACTER: Final = re.compile(r"[\w.+@=,~%-]")
_GLOB_CHARACTER: Final = re.compile(r"[\\*?\[\]{}! ]")
_UNREADABLE: Final = re.compile(rb"^rg: (?:\./|\.: )", re.MULTILINE)
_NO_NEWLINE: Final = b'the literal "\\n" is not allowed'
_SHORTAGES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""What says nothing about the program: another time it may run."""
_PROBE_SECONDS: Final = 5.0


class PatternRefusedError(Exception):
    """ripgrep does not take the pattern; the text is its reason, with the place."""

    @property
    def wants_multiline(self) -> bool:
        """The pattern spans lines, which a search line by line can never find."""
        return _NO_NEWLINE.decode() in str(self)


@dataclass(frozen=True)
class Ripgrep:
    """A ripgrep that runs here.

    Attributes:
        program: Its absolute path.
        confined: It runs under Landlock too.
    """

    program: str
    confined: bool

    def run(
        self,
        options: Sequence[str],
        place: Place,
        ignore_lines: Iterable[bytes],
        on_output: Callable[[bytes], bool],
        stop: Stop,
    ) -> int | None:
        """Run it in the root of a place, and hand over its output.

        Returns:
            How many files and folders it could not read; None when `on_output` or the time stopped it.

        Raises:
            PatternRefusedError: It does not take the pattern.
            StoppedError: `stop` was called.
            ToolError: `io_error`: it failed in another way.
        """
        with _line_file(ignore_lines) as (extra, keep), open(os.devnull, "rb") as nothing:
            hidden = [f"--glob=!/{_escaped(path)}" for path in sorted(place.hidden) if path.isprintable()]
            argv = [self.program, *_RULES, *extra, *hidden, *options, "--", place.argument]
            child = Child(
                argv,
                cwd=_folder_of(place.root),
                environment=environment(),
                keep=keep,
                readable=(place.start,) if self.confined else None,
                stdin=nothing.fileno(),
            )
            with stop.killing(child.kill):
                status, said = child.stream(on_output, deadline=stop.deadline, complaint_bytes=SEARCH_STDERR_BYTES)
        if stop.requested:
            raise StoppedError
        return judge_exit(status, said)


def judge_exit(status: int | None, said: bytes) -> int | None:
    """What an exit means: 0 and 1 are answers, 2 is a refusal or files that could not be read."""
    unreadable = len(_UNREADABLE.findall(said))
    if status is None:
        return None
    if status in (0, 1) or (status == 2 and unreadable and _UNREADABLE.match(said)):
        return unreadable
    text = said.decode("utf-8", "backslashreplace").strip().removeprefix("rg: ")
    if status == 2 and text:
        raise PatternRefusedError(text)
    reason = f"signal {-status}" if status < 0 else f"status {status}"
    first = text.splitlines()[0] if text else "no message"
    raise ToolError(f"The search engine ended with {reason}: {first}", code="io_error", retryable=True)


def grep_options(query: GrepQuery, skipped: Iterable[str], *, heed: bool, sort: bool) -> list[str]:
    """The arguments of a search, the pattern among them; no glob is ever given as a positive `-g`.

    A positive one would bring ignored and hidden files back; a negative one only takes away.
    """
    query = across_any_line_end(query)
    options = [*_ROWS, *_MODES[query.mode]]
    options += [f"--glob=!{name}" for name in sorted(skipped)]
    flags = {
        "--crlf": not speaks_of_cr(query) or query.multiline,
        "--no-ignore-vcs": not heed,
        "--sort=path": sort,
        "--ignore-case": query.ignore_case,
        "--fixed-strings": query.fixed_strings,
        "--multiline": query.multiline,
    }
    options += [flag for flag, wanted in flags.items() if wanted]
    if query.mode == "content" and query.context_lines:
        options.append(f"--context={query.context_lines}")
    return [*options, f"--regexp={query.pattern}"]


def ignore_file(place: Place, pattern: GlobPattern | None, *, heed: bool) -> list[bytes]:
    """The lines of an ignore file that ranks below every .gitignore: the file filter, then the rules from above.

    The filter is a superset of the pattern, which decides later; it only keeps ripgrep from reading the rest.
    """
    lines: list[str] = []
    if pattern is not None and not place.is_file:
        lines += ["*", "!*/"]
        for parts in pattern.alternatives:
            rough = "/".join(_rough(part) for part in parts)
            lines += [f"!/{rough}", f"!/{_literally(place.prefix)}{rough}"]
    if heed and place.scope is not None:
        lines += _rules_from_above(place.scope, place.prefix)
    return [line.encode("utf-8", "surrogateescape") for line in dict.fromkeys(lines)]


def find_ripgrep() -> str | None:
    """The absolute path of a ripgrep; None where there is none."""
    name = "rg.exe" if sys.platform == "win32" else "rg"
    beside = [os.path.dirname(sys.executable), _scripts()]
    for folder in [*beside, *os.environ.get("PATH", "").split(os.pathsep)]:
        program = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _scripts() -> str:
    try:
        return sysconfig.get_path("scripts")
    except (AttributeError, OSError):  # short of descriptors Python 3.13.0 cannot read its own configuration
        return ""


def start_ripgrep(program: str | None, folder: int) -> Ripgrep | None:
    """Try it out: under Landlock where the kernel has it, else, or where it cannot live there, without.

    Args:
        program: Its path; None looks for one.
        folder: An open folder to run it in.

    Raises:
        OSError: The system is short of descriptors, processes or memory.
    """
    program = program or find_ripgrep()
    if program is None:
        return None
    choices = (True, False) if landlock_version() and _is_binary(program) else (False,)
    return next((Ripgrep(program, confined) for confined in choices if _answers(program, folder, confined)), None)


def _answers(program: str, folder: int, confined: bool) -> bool:
    said: list[bytes] = []
    with open(os.devnull, "rb") as nothing:
        try:
            child = Child(
                [program, "--no-config", "--version"],
                cwd=_folder_of(folder),
                environment=environment(),
                readable=(folder,) if confined else None,
                stdin=nothing.fileno(),
            )
        except OSError as e:
            if e.errno in _SHORTAGES:
                raise
            return False
        end = time.monotonic() + _PROBE_SECONDS
        status, _ = child.stream(lambda block: said.append(block) is None, deadline=end, complaint_bytes=0)
    return status == 0 and b"".join(said).startswith(b"ripgrep ")


def _is_binary(program: str) -> bool:
    """A script, such as a version manager's shim, needs an interpreter, which Landlock would keep from it."""
    try:
        with open(program, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def environment() -> dict[str, str]:
    """What a helper process gets: nothing that changes what is found."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {"LC_ALL": "C", **kept}


def _folder_of(descriptor: int) -> str:
    """A name of an open folder for a child that has the same descriptors until it runs its program."""
    path = f"/proc/self/fd/{descriptor}"
    return path if os.path.isdir(path) else descriptor_path(descriptor) or "."


@contextlib.contextmanager
def _line_file(lines: Iterable[bytes]) -> Generator[tuple[list[str], tuple[int, ...]]]:
    """A file of these lines that has no name, and the arguments that tell ripgrep of it."""
    content = b"".join(line + b"\n" for line in lines)
    if not content:
        yield [], ()
        return
    if hasattr(os, "memfd_create"):
        handle = os.fdopen(os.memfd_create("toolkit-ignore"), "w+b")
    else:
        handle = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the `with` below
    with handle:
        handle.write(content)
        handle.seek(0)
        handle.flush()
        base = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
        yield [f"--ignore-file={base}/{handle.fileno()}"], (handle.fileno(),)


def _rough(part: Part) -> str:
    """A part for the filter: what might mean something else there is any one character, or any name."""
    if part.any_depth:
        return "**"
    if part.literal is not None:
        return _literally(part.literal)
    if any(c in part.text for c in "[\\"):
        return "*"
    return "".join(c if c in "*?" or _PLAIN_CHARACTER.match(c) else "?" for c in part.text)


def _literally(text: str) -> str:
    return "".join(c if c == "/" or _PLAIN_CHARACTER.match(c) else "?" for c in text)


def _escaped(text: str) -> str:
    """A path as the glob that means it alone."""
    return _GLOB_CHARACTER.sub(r"\\\g<0>", text)


def _rules_from_above(scope: IgnoreScope, prefix: str) -> list[str]:
    """The rules of the folders above the start, rewritten for the root; the nearest come last and win."""
    scopes = [scope]
    while scopes[-1].outer is not None:
        scopes.append(scopes[-1].outer)
    return [
        _from_root(rule, _literally(prefix[: one.depth_chars])) for one in reversed(scopes) for rule in one.rules.rules
    ]


def _from_root(rule: Rule, folder: str) -> str:
    middle = "" if rule.anchored else "**/"
    pattern = rule.pattern.encode("latin-1").decode("utf-8", "surrogateescape").replace("{", "[{]").replace("}", "[}]")
    return f"{'' if rule.ignored else '!'}/{folder}{middle}{pattern}{'/' if rule.folders_only else ''}"
