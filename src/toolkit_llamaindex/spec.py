"""Capabilities as a LlamaIndex tool spec, with the instructions that belong to them."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from llama_index.core.tools.tool_spec.base import SPEC_FUNCTION_TYPE, BaseToolSpec

from toolkit_core.capability import Capability
from toolkit_core.context import NO_CONTEXT, ToolContext
from toolkit_core.limits import ANSWER_TIMEOUT_SECONDS
from toolkit_core.output_window import Window
from toolkit_core.tool import Tool, ToolSet
from toolkit_llamaindex._tool import to_llamaindex
from toolkit_llamaindex.deferred import ToolRetriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from llama_index.core.tools import FunctionTool
    from llama_index.core.tools.types import ToolMetadata

    from toolkit_llamaindex.approvals import Decider

_WINDOW: Final = Window()


class AgentToolSpec(BaseToolSpec):
    """Capabilities for an agent: `to_tool_list()` are their tools, `instructions()` the text for `system_prompt`.

    Example::

        spec = AgentToolSpec(".")
        agent = FunctionAgent(tools=spec.to_tool_list(), system_prompt=await spec.instructions(), llm=llm)

    Args:
        capabilities: What the agent can do: capabilities, a tool set, or a folder for the standard ones in it.
        config: Which standard capabilities, where a folder was given; see `standard_capabilities`.
        memory_dir: The folder of the memory capability, where a folder was given.
        window: As in `to_llamaindex`.
        policy: As in `to_llamaindex`.
        bind_context: As in `to_llamaindex`.
        answer_timeout_seconds: As in `to_llamaindex`.

    Raises:
        ValueError: Two tools have one name.
    """

    def __init__(
        self,
        capabilities: Iterable[Capability] | ToolSet | str | PathLike[str],
        *,
        config: Mapping[str, Any] | None = None,
        memory_dir: str | None = None,
        window: Window | None = _WINDOW,
        policy: Decider | None = None,
        bind_context: bool = True,
        answer_timeout_seconds: float | None = ANSWER_TIMEOUT_SECONDS,
    ) -> None:
        self._capabilities = _resolved(capabilities, config, memory_dir)
        self._options: dict[str, Any] = {
            "window": window,
            "policy": policy,
            "bind_context": bind_context,
            "answer_timeout_seconds": answer_timeout_seconds,
        }
        self.tools: ToolSet = _together(self._capabilities)
        """The core's tools of all capabilities, as one set."""
        self.spec_functions: list[SPEC_FUNCTION_TYPE] = list(self.tools.names)

    async def instructions(self, context: ToolContext = NO_CONTEXT) -> str:
        """The capabilities' instructions as things stand now; ask anew before each run."""
        texts = [await capability.instructions(context) for capability in self._capabilities]
        return "\n\n".join(text for text in texts if text)

    def to_tool_list(
        self,
        spec_functions: list[SPEC_FUNCTION_TYPE] | None = None,
        func_to_metadata_mapping: dict[str, ToolMetadata] | None = None,
    ) -> list[FunctionTool]:
        """The tools, converted; deferred ones too, since a plain list cannot hide them (see `to_retriever`).

        Args:
            spec_functions: Only the tools of these names.
            func_to_metadata_mapping: Other names and descriptions, by the tool's name.
        """
        return to_llamaindex(self._chosen(spec_functions, func_to_metadata_mapping or {}), **self._options)

    def to_retriever(self) -> ToolRetriever:
        """The tools as an agent's `tool_retriever`, which shows deferred ones once they were looked up."""
        return ToolRetriever(self.tools, **self._options)

    async def aclose(self) -> None:
        """Stop what sessions left running."""
        await self.tools.aclose()

    def _chosen(
        self, wanted: Sequence[SPEC_FUNCTION_TYPE] | None, metadata: Mapping[str, ToolMetadata]
    ) -> list[Tool[Any]]:
        names = [name if isinstance(name, str) else name[0] for name in wanted or self.tools.names]
        return [_renamed(self.tools[name], metadata.get(name)) for name in names]


def _renamed(tool: Tool[Any], metadata: ToolMetadata | None) -> Tool[Any]:
    if metadata is None:
        return tool
    return replace(tool, name=metadata.name or tool.name, description=metadata.description or tool.description)


def _together(capabilities: Sequence[Capability]) -> ToolSet:
    together = ToolSet([])
    for capability in capabilities:
        together = together + capability.tools
    return together


def _resolved(
    given: Iterable[Capability] | ToolSet | str | PathLike[str],
    config: Mapping[str, Any] | None,
    memory_dir: str | None,
) -> tuple[Capability, ...]:
    if isinstance(given, str | PathLike):
        from toolkit_core.capabilities import standard_capabilities

        return tuple(standard_capabilities(config or {}, cwd=given, memory_dir=memory_dir))
    if config is not None or memory_dir is not None:
        raise TypeError("config and memory_dir belong to a folder; here capabilities were given")
    if isinstance(given, ToolSet):
        return (Capability("tools", given),)
    listed: list[object] = list(given)
    return tuple(_capability(item) for item in listed)


def _capability(item: object) -> Capability:
    if isinstance(item, Capability):
        return item
    raise TypeError(f"expected capabilities, a tool set or a folder, not {item!r}")
