"""Reading arguments as models send them: lenient with the shape, never with the content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from toolkit_core.limits import SHOWN_INTEGER_BITS
from toolkit_core.schema.messages import surrogate_text

Schema = Mapping[str, Any]

_INTEGER: Final = re.compile(r"\s*[+-]?\d{1,18}\s*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*")


@dataclass
class Reading:
    """Arguments brought into shape, and what could not be: (path, what is wrong) each."""

    value: Any
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def read_leniently(arguments: object, schema: Schema, aliases: Mapping[str, str]) -> Reading:
    """Bring a model's arguments into the shape that the schema declares.

    Null for an optional property is dropped; a JSON string is read where an object or array is declared
    (raw newlines in it too); one object is taken for a list of one; a number or boolean in a string is
    read where one is declared; an aliased name is the name. Strings declared as strings are never touched, and
    one that has no UTF-8 form is a problem.
    Unknown names are problems, where the schema takes no others.
    """
    reading = Reading(None)
    if arguments is None:
        arguments = {}
    elif isinstance(arguments, str):
        arguments = _from_json(arguments, dict)
    if not isinstance(arguments, Mapping):
        reading.problems.append(("", f"the arguments must be an object, not {_kind(arguments)}"))
        return reading
    named = _rename(cast("Mapping[object, Any]", arguments), aliases)
    reading.value = _object(named, schema, "", reading.problems)
    return reading


def unpacked(arguments: object, schema: Schema) -> object:
    """The arguments with JSON texts read where the schema declares an object or an array, else as they are."""
    arguments = _from_json(arguments, dict)
    if not isinstance(arguments, dict):
        return arguments
    kinds = {"object": dict, "array": list}
    properties: Mapping[str, Schema] = schema.get("properties", {})
    sent = cast("dict[str, Any]", arguments)
    return {
        name: _from_json(value, kinds[kind]) if (kind := properties.get(name, {}).get("type")) in kinds else value
        for name, value in sent.items()
    }


def _rename(arguments: Mapping[object, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    named: dict[str, Any] = {str(key): value for key, value in arguments.items()}
    for alias, name in aliases.items():
        if alias in named and named.get(name) is None:
            named[name] = named.pop(alias)
    return named


def _object(value: Mapping[str, Any], schema: Schema, path: str, problems: list[tuple[str, str]]) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties", True)
    shaped: dict[str, Any] = {}
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        declared = properties.get(name)
        if declared is not None:
            if item is not None or name in required:
                shaped[name] = _shape(item, declared, where, problems)
        elif others is False:
            problems.append((where, "unknown parameter"))
        else:
            shaped[name] = (
                _shape(item, cast("Schema", others), where, problems) if isinstance(others, Mapping) else item
            )
    return shaped


def _shape(value: Any, schema: Schema, path: str, problems: list[tuple[str, str]]) -> Any:
    kind = schema.get("type")
    if isinstance(value, str) and not value.isascii() and (found := _SURROGATE.search(value)):
        problems.append((path, surrogate_text(ord(found[0]), found.start())))
        return ""
    if kind == "object":
        value = _from_json(value, dict)
        return _object(cast("dict[str, Any]", value), schema, path, problems) if isinstance(value, dict) else value
    if kind == "array":
        return _array(value, schema, path, problems)
    if kind in ("integer", "number"):
        return _number(value, kind, path, problems)
    if kind == "boolean" and isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if kind is None and ("anyOf" in schema or "oneOf" in schema):
        return _union(value, schema, path, problems)
    return value


def _array(value: Any, schema: Schema, path: str, problems: list[tuple[str, str]]) -> Any:
    value = _from_json(value, list)
    items: Schema = schema.get("items", {})
    if isinstance(value, Mapping) and items.get("type") == "object":
        value = [cast("Schema", value)]
    if not isinstance(value, list | tuple):
        return cast("Any", value)
    listed = cast("list[Any]", value)
    return [_shape(item, items, f"{path}[{i}]", problems) for i, item in enumerate(listed)]


def _number(value: Any, kind: str, path: str, problems: list[tuple[str, str]]) -> Any:
    if isinstance(value, bool):
        problems.append((path, f"must be {'an integer' if kind == 'integer' else 'a number'}, not a boolean"))
        return 0
    if isinstance(value, str):
        if _INTEGER.fullmatch(value):
            return int(value)
        if _NUMBER.fullmatch(value):
            value = float(value)
    if isinstance(value, int) and value.bit_length() > SHOWN_INTEGER_BITS:
        problems.append((path, "is a number of more digits than can be written"))
        return 0
    if kind == "integer" and isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def _union(value: Any, schema: Schema, path: str, problems: list[tuple[str, str]]) -> Any:
    """Only where the value's own kind names one branch of structures: a guess would touch content."""
    branches: list[Schema] = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    kinds = [branch.get("type") for branch in branches]
    if isinstance(value, str) and "string" not in kinds:
        value = _from_json(value, dict if "object" in kinds else list) if {"object", "array"} & set(kinds) else value
    wanted = "object" if isinstance(value, Mapping) else "array" if isinstance(value, list) else None
    if wanted is not None and kinds.count(wanted) == 1:
        return _shape(value, branches[kinds.index(wanted)], path, problems)
    return cast("Any", value)


def _from_json(value: Any, wanted: type) -> Any:
    """What a JSON text holds, where it is one of the wanted structures (a list may come as one object)."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        parsed: Any = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    fits = isinstance(parsed, wanted) or (wanted is list and isinstance(parsed, dict))
    return cast("Any", parsed) if fits else value


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text that holds no JSON object"
    return f"a value of type {type(value).__name__}"
