"""What the file tools share: names of arguments, and the port they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from toolkit_core.effects import Claims

if TYPE_CHECKING:
    from toolkit_core.ports.files import Files

PATH_ALIASES: Final = {"file_path": "path", "file": "path", "filepath": "path", "filename": "path"}
"""Names that models were trained on; accepted, never advertised."""

_EDIT_ALIASES: Final = {
    "old_string": "old_text",
    "oldString": "old_text",
    "oldText": "old_text",
    "old_str": "old_text",
    "old": "old_text",
    "new_string": "new_text",
    "newString": "new_text",
    "newText": "new_text",
    "new_str": "new_text",
    "new": "new_text",
    "replaceAll": "replace_all",
    "all": "replace_all",
}
_EDIT_NAMES: Final = ("old_text", "new_text", "replace_all")


def need_port(port: object, factory: str) -> None:
    """Raise TypeError where a factory was given no port."""
    if port is None:
        raise TypeError(f"{factory} needs a Files port, such as HostFiles(cwd)")


class HasPath(Protocol):
    """Arguments that name a file."""

    @property
    def path(self) -> str:
        """As the model spelled it."""
        ...


class PathJudges:
    """What a call on one path acts on, by the resolver that the call itself uses."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def subject(self, args: HasPath) -> str:
        """The string that rules match."""
        return (await self._files.resolve(args.path)).subject

    async def writes(self, args: HasPath) -> tuple[str, ...]:
        """The absolute real path."""
        return ((await self._files.resolve(args.path)).real,)

    async def claims(self, args: HasPath) -> Claims:
        """The path, held while it is written."""
        return Claims(paths=await self.writes(args))

    async def reading_claims(self, args: HasPath) -> Claims:
        """The path, which is only read."""
        return Claims(paths=await self.writes(args), read_only=True)


def rearranged_edits(arguments: dict[str, Any]) -> dict[str, Any]:
    """Edits as models send them: other names, or a single edit without the list."""
    arguments = _renamed(arguments)
    edits: object = arguments.get("edits")
    if edits is None and "old_text" in arguments:
        flat = {name: arguments.pop(name) for name in _EDIT_NAMES if name in arguments}
        return {**arguments, "edits": [flat]}
    if isinstance(edits, dict):
        edits = [cast("dict[str, Any]", edits)]
    if isinstance(edits, list):
        listed = cast("list[Any]", edits)
        arguments["edits"] = [_renamed(cast("dict[str, Any]", e)) if isinstance(e, dict) else e for e in listed]
    return arguments


def _renamed(arguments: dict[str, Any]) -> dict[str, Any]:
    named = dict(arguments)
    for alias, name in _EDIT_ALIASES.items():
        if alias in named and named.get(name) is None:
            named[name] = named.pop(alias)
    return named
