"""What is wrong with arguments, in words that a model can act on: all of it at once."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from toolkit_core.errors import ToolError
from toolkit_core.schema.plain import encodable

if TYPE_CHECKING:
    from pydantic import ValidationError

Problem = tuple[str, str]

_SHOWN_PROBLEMS: Final = 20
_SHOWN_CHARS: Final = 400
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxlevel = 3
_short.maxlist = _short.maxdict = 4


class SchemaViolation(Protocol):
    """What is used of a `jsonschema.ValidationError`."""

    validator: Any
    validator_value: Any
    instance: Any
    message: str
    context: Sequence[SchemaViolation] | None
    schema: Any

    @property
    def absolute_path(self) -> Iterable[str | int]: ...  # noqa: D102 - as in jsonschema


def short_repr(value: object) -> str:
    """The value in at most about 60 characters, encodable, whatever it is."""
    try:
        return encodable(_short.repr(value))
    except Exception:  # noqa: BLE001 - a broken __repr__ of a user's class must not hide the problem
        return f"<{type(value).__name__}>"


def path_text(location: Iterable[str | int]) -> str:
    """A location as `edits[0].old_text`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def surrogate_text(code: int, place: int) -> str:
    """What is wrong with a string that has no UTF-8 form."""
    return f"holds the lone surrogate U+{code:04X} at character {place}, which has no UTF-8 form"


def problems_of_pydantic(error: ValidationError) -> list[Problem]:
    """Every problem of a failed validation: path and what is wrong."""
    return [
        (path_text(item["loc"]), _pydantic_text(item["type"], item["msg"], item.get("ctx", {}), item["input"]))
        for item in error.errors(include_url=False)
    ]


def _pydantic_text(kind: str, message: str, context: Mapping[str, Any], value: object) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "unknown parameter"
    if kind == "string_unicode" and isinstance(value, str) and (found := _SURROGATE.search(value)):
        return surrogate_text(ord(found[0]), found.start())
    if kind in ("literal_error", "enum"):
        return f"must be one of {context['expected']} (got {short_repr(value)})"
    text = message.replace("Input should be", "must be").replace("Value error, ", "")
    return f"{text} (got {short_repr(value)})"


def problems_of_jsonschema(errors: Iterable[SchemaViolation]) -> list[Problem]:
    """Every violation that a jsonschema validator found."""
    return [
        (path_text(e.absolute_path), _jsonschema_text(e)) for violation in errors for e in _of_its_branch(violation)
    ]


def _of_its_branch(e: SchemaViolation) -> list[SchemaViolation]:
    """What is wrong within the branch of a union that has the value's own type, where there is one."""
    if e.validator not in ("anyOf", "oneOf"):
        return [e]
    deeper = [inner for inner in e.context or () if inner.validator != "type"]
    return [found for inner in deeper for found in _of_its_branch(inner)] or [e]


def _jsonschema_text(e: SchemaViolation) -> str:
    got = f"(got {short_repr(e.instance)})"
    if e.validator == "required":
        present = cast("Mapping[str, Any]", e.instance)
        missing = [name for name in cast("Sequence[str]", e.validator_value) if name not in present]
        return f"lacks {', '.join(missing)}"
    if e.validator == "additionalProperties":
        known: Mapping[str, Any] = e.schema.get("properties", {})
        unknown = [name for name in cast("Mapping[str, Any]", e.instance) if name not in known]
        return f"does not take {', '.join(map(short_repr, unknown[:5]))}; it takes {', '.join(known) or 'nothing'}"
    if e.validator == "type":
        return f"must be of type {e.validator_value} {got}"
    if e.validator in ("anyOf", "oneOf"):
        kinds = [str(branch.get("type", "other")) for branch in cast("Sequence[Mapping[str, Any]]", e.validator_value)]
        return f"must be of type {' or '.join(kinds)} {got}"
    if e.validator == "enum":
        return f"must be one of {', '.join(map(repr, e.validator_value))} {got}"
    return f"must satisfy {e.validator} {short_repr(e.validator_value)} {got}"


def invalid_arguments(tool: str, problems: Sequence[Problem], schema: Mapping[str, Any]) -> ToolError:
    """The one error that reports them all, with the parameters that the tool takes."""
    unique = list(dict.fromkeys((_clip(path), _clip(what)) for path, what in problems))
    lines = [f"{path}: {what}" if path else what for path, what in unique[:_SHOWN_PROBLEMS]]
    if len(unique) > _SHOWN_PROBLEMS:
        lines.append(f"and {len(unique) - _SHOWN_PROBLEMS} more")
    return ToolError(
        f"{tool} cannot take these arguments: " + "; ".join(lines),
        code="invalid_arguments",
        hint=f"{tool} takes {parameters_text(schema)}.",
    )


def _clip(text: str) -> str:
    text = encodable(text)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


def parameters_text(schema: Mapping[str, Any]) -> str:
    """`path (string, required), offset (integer), ...`."""
    required = schema.get("required", ())
    names = [
        f"{name} ({', '.join(filter(None, (_type_text(declared), 'required' if name in required else '')))})"
        for name, declared in schema.get("properties", {}).items()
    ]
    return ", ".join(names) if names else "no parameters"


def _type_text(declared: Mapping[str, Any]) -> str:
    if "enum" in declared:
        return "one of " + ", ".join(map(str, declared["enum"][:12]))
    if declared.get("type") == "array":
        items = declared.get("items", {})
        inner = ", ".join(items.get("properties", {}))
        return f"list of {{{inner}}}" if inner else f"list of {items.get('type', 'any')}"
    return str(declared.get("type", "any"))
