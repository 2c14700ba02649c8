"""Runs in a peer's environment: reads what to do as JSON lines, does it, answers with the seconds it took."""

from __future__ import annotations

import json
import sys
import time


def deep(root):
    from deepagents.backends.filesystem import FilesystemBackend

    return FilesystemBackend(root_dir=root, virtual_mode=False, max_file_size_mb=1000)


def deep_shell(root):
    from deepagents.backends import LocalShellBackend

    return LocalShellBackend(root_dir=root, virtual_mode=False, inherit_env=True)


def lang_search(root):
    from langchain.agents.middleware.file_search import FilesystemFileSearchMiddleware

    return FilesystemFileSearchMiddleware(root_path=root)


def must(result):
    if getattr(result, "error", None):
        raise ValueError(result.error)


def grep(given):
    peer = deep(given["root"])
    return lambda: must(peer.grep(given["pattern"], given["root"]))


def glob(given):
    peer = deep(given["root"])
    return lambda: must(peer.glob(given["pattern"], given["root"]))


def read(given):
    peer = deep(given["root"])
    return lambda: must(peer.read(given["path"], given["offset"], 2000))


def edit(given):
    peer = deep(given["root"])
    turn = []

    def run():
        old, new = ("limit = 10 ", "limit = 20 ")[:: -1 if len(turn) % 2 else 1]
        turn.append(1)
        must(peer.edit(given["path"], old, new))

    return run


def execute(given):
    peer = deep_shell(given["root"])
    return lambda: peer.execute(given["command"])


def lang_grep(given):
    peer = lang_search(given["root"])
    return lambda: peer.grep_search.invoke({"pattern": given["pattern"], "output_mode": "content"})


def lang_glob(given):
    peer = lang_search(given["root"])
    return lambda: peer.glob_search.invoke({"pattern": given["pattern"]})


def community_read(given):
    from langchain_community.tools import ReadFileTool

    peer = ReadFileTool(root_dir=given["root"])
    return lambda: peer.invoke({"file_path": given["path"]})


def main():
    answers = sys.stdout
    sys.stdout = sys.stderr
    kept = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if line not in kept:
                kept[line] = globals()[asked["do"]](asked)
            before = time.perf_counter()
            kept[line]()
            answer = {"seconds": time.perf_counter() - before}
        except Exception as e:  # noqa: BLE001 - whatever a peer raises is its answer
            answer = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
