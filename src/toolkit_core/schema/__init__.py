"""The one place that knows JSON Schema dialects: self-contained schemas, lenient reading, messages, plain JSON."""

from toolkit_core.schema.lenient import Reading, read_leniently, unpacked
from toolkit_core.schema.messages import (
    invalid_arguments,
    problems_of_jsonschema,
    problems_of_pydantic,
    short_repr,
)
from toolkit_core.schema.plain import encodable, plain_json
from toolkit_core.schema.self_contained import self_contained

__all__ = [
    "Reading",
    "encodable",
    "invalid_arguments",
    "plain_json",
    "problems_of_jsonschema",
    "problems_of_pydantic",
    "read_leniently",
    "self_contained",
    "short_repr",
    "unpacked",
]
