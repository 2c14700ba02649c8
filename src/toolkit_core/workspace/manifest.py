"""What a manifest may say. Its models check form alone; `judging` decides what is allowed."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class _Entry(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileEntry(_Entry):
    """A file with this content: text, or base64 with `encoding="base64"`."""

    type: Literal["file"] = "file"
    content: str
    encoding: Literal["utf8", "base64"] = "utf8"


class DirEntry(_Entry):
    """A folder."""

    type: Literal["dir"] = "dir"


class LocalFile(_Entry):
    """A file of the machine that applies the manifest."""

    type: Literal["local_file"] = "local_file"
    source: str = Field(min_length=1)


class LocalDir(_Entry):
    """A folder of the machine that applies the manifest, with all that is in it."""

    type: Literal["local_dir"] = "local_dir"
    source: str = Field(min_length=1)


class GitRepo(_Entry):
    """A clone, one commit deep unless `shallow` is false; submodules stay out."""

    type: Literal["git_repo"] = "git_repo"
    url: str = Field(min_length=1)
    ref: str | None = None
    shallow: bool = True


class S3Mount(_Entry):
    """A bucket of Amazon S3, mounted by the sandbox itself."""

    type: Literal["s3"] = "s3"
    bucket: str = Field(min_length=1)
    region: str = Field(min_length=1)
    prefix: str = ""


class GCSMount(_Entry):
    """A bucket of Google Cloud Storage."""

    type: Literal["gcs"] = "gcs"
    bucket: str = Field(min_length=1)
    prefix: str = ""


class R2Mount(_Entry):
    """A bucket of Cloudflare R2."""

    type: Literal["r2"] = "r2"
    bucket: str = Field(min_length=1)
    account_id: str = Field(min_length=1)
    prefix: str = ""


class AzureMount(_Entry):
    """A container of Azure Blob Storage."""

    type: Literal["azure"] = "azure"
    container: str = Field(min_length=1)
    account: str = Field(min_length=1)
    prefix: str = ""


Entry = Annotated[
    FileEntry | DirEntry | LocalFile | LocalDir | GitRepo | S3Mount | GCSMount | R2Mount | AzureMount,
    Field(discriminator="type"),
]


def _nothing_for_null(value: Any) -> Any:
    return {} if value is None else value


class WorkspaceManifest(BaseModel):
    """What shall lie in a workspace.

    Attributes:
        entries: Path relative to the workspace -> what is there; they are applied in this order.
        environment: Variables for the workspace's commands: nothing here can enforce them, so that any refuses
            the whole manifest.
        permissions: What may be read and written: the same.

    Example:
        >>> WorkspaceManifest(entries={"notes.md": FileEntry(content="# Notes")}).entries["notes.md"].type
        'file'
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    entries: dict[str, Entry] = Field(default_factory=dict)
    environment: Annotated[dict[str, Any], BeforeValidator(_nothing_for_null)] = Field(default_factory=dict)
    permissions: Annotated[dict[str, Any], BeforeValidator(_nothing_for_null)] = Field(default_factory=dict)
