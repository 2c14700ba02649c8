"""A schema in the words that Google's models know.

`llama-index-llms-google-genai` asks the class in `fn_schema` for its JSON Schema and hands it to Google's own type
`Schema`, which refuses every keyword that it does not have: one `exclusiveMinimum` would end an agent's run. What is
left out here is still checked by the core when the tool is called.
https://googleapis.github.io/python-genai/genai.html#genai.types.Schema
"""

from __future__ import annotations

from typing import Any, Final, cast

_KNOWN: Final = frozenset(
    [
        "anyOf",
        "default",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    ]
)


def portable(schema: object) -> dict[str, Any]:
    """A copy of a JSON Schema without the keywords that Google's Schema does not have."""
    if not isinstance(schema, dict):
        return {}  # `true`: anything goes
    given = cast("dict[str, Any]", schema)
    kept = {key: value for key, value in given.items() if key in _KNOWN}
    if "oneOf" in given and "anyOf" not in given:
        kept["anyOf"] = given["oneOf"]
    if not all(isinstance(value, str) for value in kept.get("enum", ())):
        del kept["enum"]
    if "properties" in kept:
        kept["properties"] = {name: portable(value) for name, value in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = portable(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [portable(value) for value in kept["anyOf"]]
    return kept
