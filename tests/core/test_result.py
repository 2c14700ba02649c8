"""The envelope and its plain JSON form."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core import ErrorInfo, ImageBlock, TextBlock, ToolError, ToolResult
from toolkit_core.errors import CODES, HARD_CODES, ErrorCode
from toolkit_core.schema import plain_json


class Colour(StrEnum):
    RED = "red"


def failure(code: ErrorCode = "not_found") -> ToolResult[Any]:
    return ToolResult.failure(ErrorInfo(code, "no such file", "look elsewhere", retryable=True), detail="seen: a")


def test_the_text_of_an_error_starts_with_its_code() -> None:
    result = failure()

    assert result.text == "Error (not_found): no such file\nlook elsewhere\n\nseen: a"
    assert str(result) == result.text
    assert result.is_error


def test_a_hard_error_pretends_no_payload() -> None:
    for code in sorted(CODES):
        result = ToolResult.failure(ErrorInfo(code, "m"), data={"rows": []})  # pyright: ignore[reportArgumentType]  (each code in turn)
        assert (result.data is None) == (code in HARD_CODES)
    assert {"exhausted", "invalid_result", "internal"} == HARD_CODES


def test_an_unknown_code_is_refused_where_it_is_made() -> None:
    with pytest.raises(ValueError, match="unknown error code"):
        ToolError("m", code="oops")  # pyright: ignore[reportArgumentType]  (the point of the test)


def test_results_pickle_and_compare_and_forget_the_cause() -> None:
    info = ErrorInfo("internal", "m", cause=ValueError("secret"))
    result: ToolResult[Any] = ToolResult((TextBlock("t"), ImageBlock("image/png", b"\x89")), {"a": 1}, info)

    again = pickle.loads(pickle.dumps(result))

    assert again == result
    assert again.error.cause is None
    assert "secret" not in result.to_json()
    assert "secret" not in repr(result)


def test_raise_for_error_raises_the_same_failure() -> None:
    with pytest.raises(ToolError, match="no such file") as caught:
        failure().raise_for_error()
    assert (caught.value.code, caught.value.hint, caught.value.retryable) == ("not_found", "look elsewhere", True)
    ok = ToolResult.ok("fine")
    assert ok.raise_for_error() is ok


def test_a_tool_error_pickles() -> None:
    error = pickle.loads(pickle.dumps(ToolError("m", code="denied", hint="h", detail="d", data={"a": 1})))
    assert (error.message, error.code, error.hint, error.detail, error.data) == ("m", "denied", "h", "d", {"a": 1})


def test_to_dict_is_plain_json_whatever_is_in_it() -> None:
    data = {"big": 2**70, "nan": math.nan, "inf": -math.inf, "lone": "a\udcff", "edge": 2**63 - 1, "set": {1}}
    result = ToolResult.ok("x\ud800", data, images=(ImageBlock("image/png", b"abc"),))

    shown = result.to_dict()

    assert set(shown) == {"content", "data", "error"}
    assert shown["data"] == {
        "big": str(2**70),
        "nan": "nan",
        "inf": "-inf",
        "lone": "a\\udcff",
        "edge": 2**63 - 1,
        "set": [1],
    }
    assert shown["content"][0]["text"] == "x\\ud800"
    assert shown["content"][1]["size_bytes"] == 3
    assert "base64" not in shown["content"][1]
    json.loads(result.to_json().encode("utf-8"))


def test_from_dict_gives_back_what_to_dict_described() -> None:
    for result in (ToolResult.ok("a", {"k": [1, None]}), failure(), ToolResult.ok("", None)):
        assert ToolResult.from_dict(result.to_dict()) == result
    picture = ToolResult.ok("p", images=(ImageBlock("image/png", b"abc"),))
    assert ToolResult.from_dict(picture.to_dict(include_images=True)) == picture
    assert "image/png, 3 bytes" in ToolResult.from_dict(picture.to_dict()).text
    with pytest.raises(ValueError, match="not a tool result"):
        ToolResult.from_dict({"content": 5})


def test_plain_json_takes_what_pydantic_can_serialise() -> None:
    value = {
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "where": Path("a/b"),
        "raw": b"\xff",
        Colour.RED: Colour.RED,
        3: 4,
    }
    assert plain_json(value) == {"when": "2026-01-02T00:00:00Z", "where": "a/b", "raw": "_w==", "red": "red", "3": 4}


def test_plain_json_refuses_what_has_no_form_and_what_contains_itself() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    for value in (object(), cycle, deep, lambda: 1):
        with pytest.raises(TypeError):
            plain_json(value)
    assert plain_json(10**6000).startswith("0x")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=["Cs"]),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_any_data_survives_strict_json(value: Any) -> None:
    text = ToolResult.ok("t", value).to_json()
    assert json.loads(text.encode("utf-8"))["data"] == plain_json(value)


@pytest.mark.parametrize("text", [3, None, ["a"]])
def test_a_block_whose_text_is_no_string_is_no_result(text: object) -> None:
    with pytest.raises(ValueError, match="not a tool result"):
        ToolResult.from_dict({"content": [{"type": "text", "text": text}], "data": None, "error": None})
