"""A workspace manifest: refused, or everything that it says lies below the root."""

from __future__ import annotations

import posixpath
from typing import Any

from hypothesis import strategies as st
from pydantic import ValidationError

from tests.fuzz.making import ANY_TEXT, mostly, refused_as
from toolkit_core.errors import ToolError
from toolkit_core.workspace.judging import judge
from toolkit_core.workspace.manifest import GitRepo, WorkspaceManifest

_PATHS = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c:", "\\", "~", ".git", "\u00e9"]), max_size=5).map(
    "/".join
)
_URLS = st.sampled_from(
    [
        "https://example.com/a.git",
        "git@example.com:a.git",
        "file:///etc",
        "ext::sh",
        "-oProxyCommand=x",
        "ssh://-oA=b/c",
        "../x",
    ]
)
_TYPES = st.sampled_from(["file", "dir", "local_file", "local_dir", "git_repo", "s3", "gcs", "r2", "azure", "other"])
_ENTRY = st.fixed_dictionaries(
    {"type": mostly(_TYPES)},
    optional={
        "content": mostly(ANY_TEXT),
        "encoding": mostly(st.sampled_from(["utf8", "base64"])),
        "source": mostly(_PATHS),
        "url": mostly(_URLS | ANY_TEXT),
        "ref": mostly(ANY_TEXT | st.sampled_from(["main", "-x", "a..b"])),
        "bucket": ANY_TEXT,
    },
)
INPUTS = st.fixed_dictionaries(
    {"entries": mostly(st.dictionaries(_PATHS | ANY_TEXT, mostly(_ENTRY), max_size=4))},
    optional={"environment": mostly(st.just({})), "permissions": mostly(st.none())},
)


def check(sent: Any) -> None:
    """Refused in words, or judged."""
    try:
        manifest = WorkspaceManifest.model_validate(sent)
        judged = judge(manifest, "/plane", has_host_files=True, allow_file_urls=False)
    except ValidationError:
        return
    except ToolError as e:
        refused_as(e, "invalid_arguments", "unsupported")
        return
    for _, place, entry in judged.entries:
        assert posixpath.normpath(place) == place
        assert place.startswith("/plane/")
        if isinstance(entry, GitRepo):
            assert not entry.url.startswith(("-", "ext:", "file:"))
            assert not (entry.ref or "").startswith("-")
