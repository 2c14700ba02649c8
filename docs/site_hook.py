"""MkDocs hook: the repository's top pages are pages of the site too, and links lead from one to the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TOP = ("README", "ARCHITECTURE", "THREAT_MODEL", "SECURITY", "CONTRIBUTING", "CHANGELOG")


def on_files(files: Files, config: Any) -> Files:
    """Add the top pages."""
    for name in TOP:
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        files.append(File.generated(config, f"{name.lower()}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links as they are on the site: every page lies in one folder, other files are named only."""
    markdown = re.sub(r"\]\((?:\.\./)?(" + "|".join(TOP) + r")\.md", lambda link: f"]({link[1].lower()}.md", markdown)
    markdown = re.sub(r"\]\(docs/([\w-]+\.md)", r"](\1", markdown)
    return re.sub(r"\[([^\]\n]+)\]\((?:\.\./)?(?:notebooks|LICENSE)[^)\s]*\)", r"\1", markdown)
