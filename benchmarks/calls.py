"""What an import and a call cost, in the core and through each framework."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_type_hints

from langchain_core.tools import BaseTool as LangChainTool
from langchain_core.tools import StructuredTool
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata, ToolOutput
from pydantic import BaseModel

from benchmarks.row import PeerWork, Row, Work
from toolkit_core import function_tool
from toolkit_langchain import to_langchain
from toolkit_llamaindex import to_llamaindex

if TYPE_CHECKING:
    from benchmarks.peers import Peers

CALLS = 300
PYDANTIC = "import pydantic\nclass M(pydantic.BaseModel):\n    x: int"


class Doubled(BaseModel):
    """The arguments."""

    number: int


async def plain_double(number: int) -> str:
    """Twice a number."""
    return str(2 * number)


double = function_tool(plain_double)


class PlainLangChain(LangChainTool):
    """The framework's own subclass around the function alone: no envelope, no artifact."""

    name: str = "double"
    description: str = "Twice a number."
    args_schema: Any = Doubled

    def _run(self, number: int) -> Any:
        raise NotImplementedError

    async def _arun(self, number: int) -> Any:
        return await plain_double(number)


class BareLangChain(PlainLangChain):
    """The framework's own subclass doing the same: the core's call, its text and its envelope."""

    args_schema: Any = double.parameters
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    async def _arun(self, number: int) -> Any:
        result = await double.call({"number": number})
        return result.text, result.to_dict()


for _plain in (PlainLangChain, BareLangChain):  # as where annotations are no strings, which LangChain compiles anew
    entry = cast("Any", _plain)._arun
    entry.__annotations__ = get_type_hints(entry)


class PlainLlamaIndex(AsyncBaseTool):
    """The framework's own subclass around the function alone."""

    @property
    def metadata(self) -> ToolMetadata:
        return ToolMetadata("Twice a number.", "double", Doubled)

    def call(self, input: Any) -> ToolOutput:  # noqa: A002 - the framework's name
        raise NotImplementedError

    async def acall(self, number: int) -> ToolOutput:  # type: ignore[override]
        text = await plain_double(Doubled(number=number).number)
        return ToolOutput(content=text, tool_name="double", raw_input={"number": number}, raw_output=text)


class BareLlamaIndex(PlainLlamaIndex):
    """The framework's own subclass doing the same: the core's call, its text and its envelope."""

    async def acall(self, number: int) -> ToolOutput:  # type: ignore[override]
        result = await double.call({"number": number})
        return ToolOutput(
            content=result.text, tool_name="double", raw_input={"number": number}, raw_output=result.to_dict()
        )


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """All rows."""
    yield Row("import toolkit_core, against pydantic and one model", 1.3, fresh("import toolkit_core"), fresh(PYDANTIC))
    yield Row("httpx loaded by import toolkit_core", 0.0, httpx_loaded, unit="yes", rounds=1)
    yield Row("core call, validated", 30.0, core_call, unit="us")
    (chain,), (index,) = to_langchain([double]), to_llamaindex([double])
    structured = StructuredTool.from_function(coroutine=plain_double, name="double", description="Twice a number.")
    function = FunctionTool.from_defaults(async_fn=plain_double)
    bare_chain, bare_index = (
        BareLangChain(metadata={"effects": None, "risk": None, "deferred": False}),
        BareLlamaIndex(),
    )
    plain_chain, plain_index = PlainLangChain(), PlainLlamaIndex()
    given = {"number": 21}
    yield Row(
        "call through LangChain, against the bare subclass",
        1.1,
        repeated(lambda: chain.ainvoke(given)),
        repeated(lambda: bare_chain.ainvoke(given)),
        {
            "StructuredTool": in_thread(lambda: structured.ainvoke(given)),
            "subclass around the function alone": in_thread(lambda: plain_chain.ainvoke(given)),
        },
        rounds=15,
    )
    yield Row(
        "call through LlamaIndex, against the bare subclass",
        1.1,
        repeated(lambda: index.acall(**given)),
        repeated(lambda: bare_index.acall(**given)),
        {
            "FunctionTool": in_thread(lambda: function.acall(**given)),
            "subclass around the function alone": in_thread(lambda: plain_index.acall(**given)),
        },
        rounds=15,
    )


def fresh(code: str) -> Work:
    """A new interpreter, its own start included."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def httpx_loaded() -> float:
    """1 where the import loads it."""
    code = "import toolkit_core, sys; sys.exit('httpx' in sys.modules)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def repeated(call: Callable[[], Awaitable[object]], times: int = CALLS) -> Callable[[], Awaitable[None]]:
    """Many calls, one after the other."""

    async def run() -> None:
        for _ in range(times):
            await call()

    return run


def in_thread(call: Callable[[], Awaitable[object]]) -> PeerWork:
    """The seconds of many calls in a loop of their own."""

    async def timed() -> float:
        before = time.perf_counter()
        await repeated(call)()
        return time.perf_counter() - before

    def run() -> float:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, timed()).result()

    return run


async def core_call() -> float:
    """Microseconds a call."""
    before = time.perf_counter()
    await repeated(lambda: double.call({"number": 21}))()
    return 1e6 * (time.perf_counter() - before) / CALLS
