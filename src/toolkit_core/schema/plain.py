"""Any value as plain JSON that every encoder, store and provider takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

MAX_DEPTH: Final = 200
"""Deeper values end the recursion of json.dumps in some interpreters; real results stay below 20."""

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def encodable(text: str) -> str:
    r"""The text with lone surrogates spelled as `\udcff`, so that it has a UTF-8 form."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def plain_json(value: Any) -> Any:
    """The value in None, bool, int (64 bit), finite float, str, list and dict.

    Integers beyond 64 bits and non-finite floats become strings; models, dataclasses, dates, paths and
    other values that pydantic can serialise are serialised.

    Raises:
        TypeError: Something in it has no JSON form, or it is nested deeper than 200 levels (a cycle is).
    """
    return _plain(value, 0)


def _plain(value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if type(value) is str:  # most of any result, before the slower questions
        return encodable(value)
    if depth > MAX_DEPTH:
        raise TypeError(f"the value is nested deeper than {MAX_DEPTH} levels, or contains itself")
    if isinstance(value, Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, str):
        return encodable(str(value))
    if isinstance(value, int):
        return int(value) if _INT64_MIN <= value <= _INT64_MAX else _big(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (dict, Mapping)):  # the plain class first, which takes a tenth of the time
        items = cast("Mapping[Any, Any]", value).items()
        return {_key(k): _plain(v, depth + 1) for k, v in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, depth + 1) for v in cast("list[Any]", value)]
    return _plain(_jsonable(value), depth + 1)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return encodable(key)
    plain = _plain(key, 0)
    return plain if isinstance(plain, str) else str(plain)


def _big(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # past sys.get_int_max_str_digits()
        return hex(value)


def _jsonable(value: Any) -> Any:
    """One step of pydantic's serialisation; big numbers inside are left for `_plain`."""
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="constants", serialize_unknown=False)
    except (ValueError, TypeError, RecursionError) as e:
        reason = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise TypeError(f"a value of type {type(value).__name__} has no JSON form ({reason})") from e
