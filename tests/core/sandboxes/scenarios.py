"""One list of calls for every plane, on the same files: what a model asks, and what the files hold.

A row is a name, what is done before (files that somebody else changes, tools that are called) and the call whose
envelope is compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FILES: dict[str, bytes] = {
    "a.txt": b"one\ntwo\nthree\n",
    "crlf.txt": b"first\r\nsecond\r\nthird\r\n",
    "bom.txt": b"\xef\xbb\xbfhello\n",
    "utf16.txt": "héllo\nwörld\n".encode("utf-16"),
    "latin.txt": b"caf\xe9\nna\xefve\n",
    "empty.txt": b"",
    "binary.bin": b"\x7fELF\0\0rest",
    "no_newline.txt": b"only line",
    "clock.txt": b"key\n12:30:lunch",
    "long.txt": b"".join(b"line %d\n" % n for n in range(1, 3001)),
    "wide.txt": b"x" * 6_000 + b"needle" + b"y" * 6_000 + b"\n",
    "src/main.py": b"import os\n\n\ndef main():\n    return os.getcwd()\n",
    "src/util/help.py": b"def helper(a, b):\n    return a + b\n",
    "src/util/data.json": b'{"a": [1, 2]}\n',
    ".gitignore": b"*.log\n/build/\n!keep.log\n",
    "debug.log": b"import nothing\n",
    "keep.log": b"import kept\n",
    "build/out.py": b"import built\n",
    "node_modules/m/index.js": b"import module\n",
    ".hidden/secret.txt": b"import hidden\n",
    'with space/it\'s "odd".txt': b"odd import\n",
    "tabs\there.txt": b"tab import\n",
    "dup.txt": b"same\nsame\nsame\n",
    "notebook.ipynb": b'{"cells": [{"cell_type": "code", "source": ["print(1)"], "outputs": []}]}\n',
}

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """A scenario."""

    name: str
    tool: str
    arguments: dict[str, Any]
    before: tuple[Call, ...] = ()
    outside: dict[str, bytes] = field(default_factory=dict[str, bytes])
    after: str = ""


def _read(path: str, **more: Any) -> Row:
    return Row(f"read {path} {more}", "read_file", {"path": path, **more})


def _edit(name: str, path: str, edits: list[dict[str, Any]], *, read: bool = True, **more: Any) -> Row:
    before = (("read_file", {"path": path}),) if read else ()
    return Row(name, "edit_file", {"path": path, "edits": edits}, before, after=path, **more)


def _write(name: str, path: str, content: str, *, read: bool = False, **more: Any) -> Row:
    before = (("read_file", {"path": path}),) if read else ()
    return Row(name, "write_file", {"path": path, "content": content}, before, after=path, **more)


def _glob(pattern: str, **more: Any) -> Row:
    return Row(f"glob {pattern} {more}", "glob", {"pattern": pattern, **more})


def _grep(pattern: str, **more: Any) -> Row:
    return Row(f"grep {pattern} {more}", "grep", {"pattern": pattern, **more})


def _shell(name: str, command: str, **more: Any) -> Row:
    return Row(f"shell {name}", "shell", {"command": command, **more})


FILE_ROWS = [
    _read("a.txt"),
    _read("a.txt", offset=2, limit=1),
    _read("a.txt", offset=-1),
    _read("a.txt", offset=9),
    _read("a.txt", offset=0),
    _read("./src/../a.txt"),
    _read("crlf.txt"),
    _read("bom.txt"),
    _read("utf16.txt"),
    _read("latin.txt"),
    _read("empty.txt"),
    _read("binary.bin"),
    _read("no_newline.txt"),
    _read("long.txt", offset=1500, limit=3),
    _read("long.txt", offset=-2),
    _read("wide.txt"),
    _read("src"),
    _read("."),
    _read("missing.txt"),
    _read("missing/deeper.txt"),
    _read("a.txt/below"),
    _read('with space/it\'s "odd".txt'),
    _read("tabs\there.txt"),
    _read("notebook.ipynb", view="cells"),
    _read(""),
    _read("nul\0byte"),
    _read("x" * 300),
    _write("write a new file", "new/deep/file.txt", "content\n"),
    _write("write without reading", "a.txt", "changed\n"),
    _write("write after reading", "a.txt", "changed\n", read=True),
    _write("write nothing", "empty2.txt", ""),
    _write("write a folder", "src", "x"),
    _write("write below a file", "a.txt/x", "x"),
    _write("write a half character", "bad.txt", "\ud800"),
    _write("write odd names", "it's $HOME `id`; #.txt", "odd\n"),
    _write("write a folder's spelling", "new/", "x"),
    Row(
        "write what changed since",
        "write_file",
        {"path": "a.txt", "content": "mine\n"},
        (("read_file", {"path": "a.txt"}),),
        {"a.txt": b"somebody else\n"},
        after="a.txt",
    ),
    Row(
        "write what was written",
        "write_file",
        {"path": "w.txt", "content": "second\n"},
        (("write_file", {"path": "w.txt", "content": "first\n"}),),
        after="w.txt",
    ),
    _edit("edit once", "a.txt", [{"old_text": "two", "new_text": "2"}]),
    _edit("edit unread", "a.txt", [{"old_text": "two", "new_text": "2"}], read=False),
    _edit(
        "edit in a chain", "a.txt", [{"old_text": "two", "new_text": "2"}, {"old_text": "2\n", "new_text": "zwei\n"}]
    ),
    _edit("edit, second fails", "a.txt", [{"old_text": "two", "new_text": "2"}, {"old_text": "four", "new_text": "4"}]),
    _edit("edit what is there thrice", "dup.txt", [{"old_text": "same", "new_text": "x"}]),
    _edit("edit all", "dup.txt", [{"old_text": "same", "new_text": "x", "replace_all": True}]),
    _edit("edit across CRLF", "crlf.txt", [{"old_text": "first\nsecond", "new_text": "1\n2"}]),
    _edit("edit beside a BOM", "bom.txt", [{"old_text": "hello", "new_text": "bye"}]),
    _edit("edit UTF-16", "utf16.txt", [{"old_text": "wörld", "new_text": "Welt"}]),
    _edit("edit beside bytes", "latin.txt", [{"old_text": "na", "new_text": "NA"}]),
    _edit("edit nothing", "a.txt", [{"old_text": "two", "new_text": "two"}]),
    _edit("edit what is not there", "a.txt", [{"old_text": "tow", "new_text": "2"}]),
    _edit("edit literally", "a.txt", [{"old_text": "two", "new_text": "$& \\1 \\n"}]),
    _edit("edit a missing file", "none.txt", [{"old_text": "a", "new_text": "b"}], read=False),
    _edit("edit a folder", "src", [{"old_text": "a", "new_text": "b"}], read=False),
    _glob("*"),
    _glob("*.py"),
    _glob("**/*.py"),
    _glob("src/**"),
    _glob("src/*/"),
    _glob("{src,build}/*.py"),
    _glob("*.log"),
    _glob("**/*.py", include_ignored=True),
    _glob("node_modules/**"),
    _glob("**/*.txt", limit=2),
    _glob("*.none"),
    _glob("*", path="src"),
    _glob("*", path="missing"),
    _glob("*", path="a.txt"),
    _glob("[unclosed"),
    _grep("import"),
    _grep("import", glob="*.py"),
    _grep("import", path="src"),
    _grep("import", path="src/main.py"),
    _grep("import", output_mode="files_with_matches"),
    _grep("import", output_mode="count"),
    _grep("IMPORT", ignore_case=True, limit=2),
    _grep("IMPORT"),
    _grep("$", path="clock.txt"),
    _grep(r"\s*$", path="no_newline.txt"),
    _grep("def (main|helper)", context_lines=1),
    _grep("a + b", fixed_strings=True),
    _grep(r"main\(\):\n\s+return", multiline=True),
    _grep("second$"),
    _grep("needle"),
    _grep("import", include_ignored=True),
    _grep("import", path="build"),
    _grep("ELF"),
    _grep("a\nb"),
    _grep("x", path="missing"),
    _grep("import", glob="[bad"),
]

SHELL_ROWS = [
    _shell("success", "echo hi"),
    _shell("failure", "echo out; echo err >&2; exit 3"),
    _shell("nothing", "true"),
    _shell("missing program", "no-such-program-here 2>/dev/null"),
    _shell("folder", 'pwd | sed "s#.*/##"', cwd="src"),
    _shell("missing folder", "pwd", cwd="nowhere"),
    _shell("folder that is a file", "pwd", cwd="a.txt"),
    _shell("standard input", "cat; echo end"),
    _shell("bytes", "printf 'a\\377b'"),
    _shell("control sequences", "printf '\\033[31mred\\033[0m\\n'"),
    _shell("no newline", "printf none"),
    _shell("two lines of errors", "echo a >&2; echo b >&2"),
    _shell("bash", "[[ x == x ]] && echo yes"),
    _shell("nothing is kept", "echo ${KEPT:-unset}"),
    _shell("here document", "cat <<'E'\n$x 'y'\nE"),
    _shell("syntax error", "if then 2>/dev/null; exit 0"),
    _shell("timeout", "echo before; sleep 30", timeout_seconds=1),
    _shell("background", "sleep 30 & echo on"),
    _shell("sees the files", "cat src/util/data.json; wc -c < a.txt | tr -d ' '"),
    _shell("empty", ""),
]
