"""A shell command as its simple commands, or the honest answer that it cannot be split with certainty.

A rule for `pytest *` must never allow what runs something else. So whatever may make the shell run another
program than the words say (expansion or substitution in command position, any command substitution, a
wrapper, a function, a redirection to a file, a here-document) is uncertain, and the caller asks.
Grammar: POSIX.1-2024, Shell Command Language, https://pubs.opengroup.org/onlinepubs/9799919799/
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

_SEPARATORS: Final = frozenset({";", "&", "&&", "||", "|", "|&"})
_PUNCTUATION: Final = frozenset("();<>|&")
_PLAIN_COMMAND: Final = re.compile(r"[A-Za-z0-9_./+:@%-]+")
_HARMLESS_REDIRECTION: Final = re.compile(r"(?:>&[12]|>[ ]?/dev/null|<[ ]?/dev/null)(?=[ \t;&|]|$)")
_PLAIN_PARAMETER: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")

# fmt: off
_RESERVED: Final = frozenset({
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "coproc", "time", "in", "[[", "]]", "{", "}", "!",
})

_WRAPPERS: Final = frozenset({
    "alias", "awk", "bash", "bind", "builtin", "busybox", "chroot", "chrt", "cmd", "command", "csh", "dash",
    "doas", "entr", "env", "eval", "exec", "expect", "fakeroot", "find", "firejail", "fish", "flock", "gawk",
    "ionice", "ksh", "nice", "nohup", "nsenter", "parallel", "perf", "powershell", "pwsh", "rbash", "runuser",
    "script", "setarch", "setpriv", "setsid", "sh", "source", "ssh", "stdbuf", "strace", "su", "sudo",
    "systemd-run", "taskset", "tclsh", "timeout", "tmux", "trap", "unshare", "watch", "xargs", "zsh", ".",
})
# fmt: on
"""Programs and builtins that run what their arguments say."""


@dataclass(frozen=True)
class Split:
    """Either the simple commands, each as its words, or why there is no certain answer."""

    commands: tuple[tuple[str, ...], ...] = ()
    uncertain: str = ""


def split_command(command: str) -> Split:
    """Split a command line for a POSIX shell into its simple commands.

    Example:
        >>> split_command("git add . && pytest -q").commands
        (('git', 'add', '.'), ('pytest', '-q'))
    """
    try:
        plain = _without_harmless_redirections(command)
        return Split(_simple_commands(plain))
    except _UncertainError as e:
        return Split(uncertain=str(e))


class _UncertainError(Exception):
    pass


def _without_harmless_redirections(command: str) -> str:
    """Walk the text as the shell quotes it; refuse what cannot be judged from its words."""
    if any(ord(c) < 32 and c != "\t" for c in command):
        raise _UncertainError("it has several lines or control characters")
    return _Walk(command).kept()


class _Walk:
    """The text up to `place`, what is kept of it, and the quotation that is open."""

    def __init__(self, command: str) -> None:
        self._command, self._place, self._quote = command, 0, ""
        self._kept: list[str] = []

    def kept(self) -> str:
        while self._place < len(self._command):
            self._step(self._command[self._place])
        if self._quote:
            raise _UncertainError("a quotation is not closed")
        return "".join(self._kept)

    def _step(self, c: str) -> None:
        if self._quote == "'":
            self._quote = "" if c == "'" else "'"
            self._keep(c)
        elif c in "`$\\":
            self._special(c)
        elif self._quote:
            self._quote = "" if c == '"' else '"'
            self._keep(c)
        else:
            self._bare(c)

    def _special(self, c: str) -> None:
        """What means something between double quotes too."""
        if c == "`":
            raise _UncertainError("it substitutes a command (`)")
        if c == "$":
            if not _PLAIN_PARAMETER.match(self._command, self._place):
                raise _UncertainError("it has an expansion that may run something ($)")
            self._keep(c)
            return
        after = self._command[self._place + 1 : self._place + 2]
        if not after or after in _PUNCTUATION:
            raise _UncertainError("it escapes an operator")
        self._keep(c + after)

    def _bare(self, c: str) -> None:
        if c in "()":
            raise _UncertainError("it has a group or a function")
        if c == "#" and self._at_word_start():
            raise _UncertainError("it has a comment")
        if c in "<>":
            self._redirection()
            return
        if c in "'\"":
            self._open_quote(c)
        self._keep(c)

    def _open_quote(self, c: str) -> None:
        """A quoted operator looks like an operator once shlex has taken the quotes away."""
        end = self._command.find(c, self._place + 1)
        inside = self._command[self._place + 1 : end]
        if end > 0 and inside and set(inside) <= _PUNCTUATION:
            raise _UncertainError("it quotes an operator")
        self._quote = c

    def _redirection(self) -> None:
        found = _HARMLESS_REDIRECTION.match(self._command, self._place)
        numbered = bool(self._kept) and self._kept[-1] in ("0", "1", "2") and self._at_word_start(1)
        if found is None or not (numbered or self._at_word_start()):
            raise _UncertainError("it redirects to or from a file")
        if numbered:
            self._kept.pop()
        self._place = found.end()

    def _at_word_start(self, back: int = 0) -> bool:
        before = self._kept[-1 - back :][:1] if len(self._kept) > back else []
        return not before or before[0] in " \t;&|"

    def _keep(self, text: str) -> None:
        self._kept.append(text)
        self._place += len(text)


def _simple_commands(plain: str) -> tuple[tuple[str, ...], ...]:
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for token in lexer:
            if not token or set(token) - _PUNCTUATION:
                commands[-1].append(token)
            elif token in _SEPARATORS:
                commands.append([])
            else:
                raise _UncertainError(f"it has the operator {token}")
    except ValueError as e:
        raise _UncertainError("a quotation is not closed") from e
    found = tuple(tuple(words) for words in commands if words)
    if not found:
        raise _UncertainError("it holds no command")
    for words in found:
        _judge_command_word(words[0])
    return found


def _judge_command_word(word: str) -> None:
    if word in _RESERVED:
        raise _UncertainError(f"it uses the shell's own grammar ({word})")
    if not _PLAIN_COMMAND.fullmatch(word):
        raise _UncertainError("the name of the command is expanded or assigned to")
    if word.rsplit("/", 1)[-1] in _WRAPPERS:
        raise _UncertainError(f"{word} runs what its arguments say")
