"""A schema that every provider takes: nothing to resolve, nothing ambiguous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, cast

Schema = dict[str, Any]

_ONE_SUBSCHEMA: Final = ("not", "if", "then", "else", "contains", "propertyNames", "additionalItems")
_MAP_OF_SUBSCHEMAS: Final = ("patternProperties", "dependentSchemas")
_DROPPED: Final = ("title", "$schema", "$id", "$defs", "definitions", "$comment", "discriminator")
_TYPE_NAMES: Final[dict[type[Any], str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def self_contained(schema: Mapping[str, Any], *, additional_properties: bool = True) -> Schema:
    """A copy without `$ref`, `anyOf` with null, `const` and type arrays; objects say what else they take.

    Args:
        schema: A JSON Schema (2020-12 or older) whose root is an object.
        additional_properties: What an object means that does not say `additionalProperties`.

    Raises:
        ValueError: The root is not an object or is a union, a reference is remote, broken or recursive.
    """
    root = deepcopy(dict(schema))
    if any(key in root for key in ("oneOf", "anyOf", "allOf")):
        raise ValueError("the root of a tool's schema must be one object, not a union: move the union into a property")
    done = _Flattener(root, additional_properties).flatten(root, ())
    if done.setdefault("type", "object") != "object":
        raise ValueError(f"the root of a tool's schema must have type object, not {done['type']!r}")
    done.setdefault("properties", {})
    done.setdefault("additionalProperties", additional_properties)
    return done


class _Flattener:
    def __init__(self, root: Schema, additional_properties: bool) -> None:
        self._root = root
        self._additional = additional_properties

    def flatten(self, schema: Any, trail: tuple[str, ...]) -> Schema:
        if schema is True:
            return {}
        if schema is False:
            return {"not": {}}
        node: Schema = dict(schema)
        node, trail = self._follow(node, trail)
        node = {key: value for key, value in node.items() if key not in _DROPPED or not _is_annotation(key, value)}
        self._unions(node, trail)
        self._merge_single(node)
        self._types(node)
        self._containers(node, trail)
        return node

    def _follow(self, node: Schema, trail: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        while "$ref" in node:
            ref = node.pop("$ref")
            if ref in trail:
                raise ValueError(f"the schema refers to itself through {ref}: a recursive schema cannot be inlined")
            trail = (*trail, ref)
            node = {**self._look_up(ref), **node}
        return node, trail

    def _look_up(self, ref: str) -> Schema:
        if ref == "#":
            raise ValueError("the schema refers to itself through #: a recursive schema cannot be inlined")
        if not ref.startswith("#/"):
            raise ValueError(f"the reference {ref!r} leaves the schema: inline it first")
        found: Any = self._root
        for part in ref[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise ValueError(f"the reference {ref!r} leads nowhere")
            found = cast("Schema", found)[key]
        if not isinstance(found, dict):
            raise ValueError(f"the reference {ref!r} does not lead to a schema")
        return dict(cast("Schema", found))

    def _unions(self, node: Schema, trail: tuple[str, ...]) -> None:
        for key in ("anyOf", "oneOf", "allOf"):
            if key not in node:
                continue
            branches = [self.flatten(branch, trail) for branch in node[key]]
            if key != "allOf":
                kept = [branch for branch in branches if not _is_null(branch)]
                if len(kept) < len(branches) and node.get("default", 0) is None:
                    del node["default"]
                branches = kept
            node[key] = branches

    def _merge_single(self, node: Schema) -> None:
        for key in ("anyOf", "oneOf", "allOf"):
            if len(node.get(key, ())) == 1:
                [only] = node.pop(key)
                for name, value in only.items():
                    node.setdefault(name, value)

    def _types(self, node: Schema) -> None:
        if "const" in node:
            node["enum"] = [node.pop("const")]
        if isinstance(node.get("type"), list):
            self._type_array(node)
        if "enum" in node:
            self._enum(node)

    def _type_array(self, node: Schema) -> None:
        types = [name for name in node.pop("type") if name != "null"]
        if node.get("default", 0) is None:
            del node["default"]
        if len(types) == 1:
            node["type"] = types[0]
        elif types:
            node["anyOf"] = [{"type": name} for name in types]

    def _enum(self, node: Schema) -> None:
        values: Sequence[Any] = [value for value in node["enum"] if value is not None] or node["enum"]
        node["enum"] = list(values)
        names = {_TYPE_NAMES.get(cast("type[Any]", type(value))) for value in values}
        if "type" not in node and len(names) == 1 and (name := names.pop()) is not None:
            node["type"] = name

    def _containers(self, node: Schema, trail: tuple[str, ...]) -> None:
        if node.get("type") == "object" or "properties" in node:
            properties: Schema = node.get("properties", {})
            node["properties"] = {name: self.flatten(value, trail) for name, value in properties.items()}
            node.setdefault("additionalProperties", self._additional)
        if isinstance(node.get("additionalProperties"), dict):
            node["additionalProperties"] = self.flatten(node["additionalProperties"], trail)
        if node.get("type") == "array":
            self._array(node, trail)
        for key in _ONE_SUBSCHEMA:
            if isinstance(node.get(key), dict):
                node[key] = self.flatten(node[key], trail)
        for key in _MAP_OF_SUBSCHEMAS:
            if key in node:
                node[key] = {name: self.flatten(value, trail) for name, value in node[key].items()}

    def _array(self, node: Schema, trail: tuple[str, ...]) -> None:
        """Tuples become arrays whose items are any of the places' types; some providers know no prefixItems."""
        places = node.pop("prefixItems", None)
        items = node.get("items", {})
        if isinstance(items, list):
            places, items = cast("list[Any]", items), {}
        if places:
            branches: list[Schema] = []
            for place in places:
                flat = self.flatten(place, trail)
                if flat not in branches:
                    branches.append(flat)
            node["items"] = branches[0] if len(branches) == 1 else {"anyOf": branches}
        else:
            node["items"] = self.flatten(items, trail)


def _is_annotation(key: str, value: Any) -> bool:
    return key != "title" or isinstance(value, str)


def _is_null(branch: Schema) -> bool:
    return branch.get("type") == "null" or branch.get("enum") == [None]
