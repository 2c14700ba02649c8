"""Workspace manifests: what shall lie in a sandbox, judged whole, then applied entry by entry."""

from toolkit_core.workspace.applying import EntryStatus, ManifestResult, apply_manifest
from toolkit_core.workspace.manifest import (
    AzureMount,
    DirEntry,
    FileEntry,
    GCSMount,
    GitRepo,
    LocalDir,
    LocalFile,
    R2Mount,
    S3Mount,
    WorkspaceManifest,
)

__all__ = [
    "AzureMount",
    "DirEntry",
    "EntryStatus",
    "FileEntry",
    "GCSMount",
    "GitRepo",
    "LocalDir",
    "LocalFile",
    "ManifestResult",
    "R2Mount",
    "S3Mount",
    "WorkspaceManifest",
    "apply_manifest",
]
