"""Trust inputs: entries at a workspace's root that agents, editors, shells and git obey without being asked.

The line is drawn at what takes effect when somebody merely opens, enters, commits in or starts an agent in
the folder. What takes effect only when somebody runs the project (package.json, Makefile, .npmrc, conftest.py)
is workspace content, and stays writable.
"""

from __future__ import annotations

from typing import Final

_VERSION_CONTROL = (
    ".git",  # hooks, config (aliases, fsmonitor, filters) and pointers: any git command obeys them
    ".gitconfig",  # a root that is somebody's home
    ".gitmodules",  # where `git submodule` fetches from and checks out to
    ".hg",  # hgrc holds hooks
    ".jj",
    ".husky",  # git hooks kept in the tree, run by `git commit`
    ".githooks",
    ".pre-commit-config.yaml",  # programs that an installed hook runs on `git commit`
    "lefthook.yml",
    ".lefthook.yml",
)
_AGENTS = (
    "AGENTS.md",  # standing instructions, read before the first word of a person
    "AGENTS.override.md",
    "AGENT.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    ".agents",
    ".claude",  # settings with hooks and permissions
    ".claude.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".cursor",
    ".cursorrules",
    ".windsurf",
    ".windsurfrules",
    ".cline",
    ".clinerules",
    ".roo",
    ".roomodes",
    ".roorules",
    ".kilocode",
    ".continue",
    ".kiro",
    ".junie",
    ".amazonq",
    ".augment",
    ".trae",
    ".goose",
    ".goosehints",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".aider.conf.yml",
)
_MCP = (".mcp.json", "mcp.json", ".mcp")  # each names programs to start
_EDITORS = (
    ".vscode",  # tasks that run when the folder is opened
    ".idea",
    ".fleet",
    ".zed",
    ".devcontainer",  # initializeCommand runs on the host
    ".devcontainer.json",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".dir-locals-2.el",
)
_SHELLS = (
    ".envrc",  # direnv: runs on `cd`
    ".direnv",
    ".mise.toml",
    "mise.toml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".ssh",
)

TRUST_INPUTS: Final[tuple[str, ...]] = (*_VERSION_CONTROL, *_AGENTS, *_MCP, *_EDITORS, *_SHELLS)
"""Names at the root of a workspace; a folder is meant whole."""

_NAMES = frozenset(TRUST_INPUTS)


def trust_input(relative: str) -> str | None:
    """The trust input that a path relative to the root (with `/`) lies in, or None.

    Example:
        >>> trust_input(".git/hooks/pre-commit")
        '.git'
        >>> trust_input("src/.git/config") is None
        True
    """
    first = next((part for part in relative.split("/") if part not in {"", "."}), "")
    return first if first in _NAMES else None
