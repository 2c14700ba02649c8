"""What an import loads, seen from a fresh process; who may import whom is import-linter's (`make check`)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FRAMEWORKS = ("langchain", "langchain_core", "langgraph", "deepagents", "llama_index", "workflows")
HOST = ("toolkit_core.host", "toolkit_core.capabilities", "toolkit_core.defaults", "toolkit_core.cli")


def loaded_after(code: str) -> set[str]:
    """The modules of a fresh interpreter that ran this code."""
    program = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def within(modules: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(m for m in modules if any(m == p or m.startswith(p + ".") for p in packages))


NEUTRAL_NAMES = "Tool, ToolSet, ToolResult, ToolContext, function_tool, model_tool, schema_tool, Effects, ToolError"


@pytest.mark.parametrize("code", ["import toolkit_core", f"from toolkit_core import {NEUTRAL_NAMES}"])
def test_the_core_loads_no_framework_no_host_and_no_http_client(code: str) -> None:
    modules = loaded_after(code)

    assert "toolkit_core" in modules
    assert within(modules, (*FRAMEWORKS, *HOST, "httpx", "aiofiles", "rich", "asyncssh", "opentelemetry")) == []


def test_control_a_name_that_needs_the_machine_loads_the_host() -> None:
    modules = loaded_after("from toolkit_core import default_tools")

    assert within(modules, ("toolkit_core.host",))
    assert within(modules, FRAMEWORKS) == []


@pytest.mark.parametrize(
    ("adapter", "own", "foreign"),
    [
        ("toolkit_langchain", "langchain_core", ("llama_index", "workflows", "toolkit_llamaindex")),
        ("toolkit_llamaindex", "llama_index", ("langchain", "langchain_core", "langgraph", "toolkit_langchain")),
    ],
)
def test_an_adapter_loads_only_its_own_framework(adapter: str, own: str, foreign: tuple[str, ...]) -> None:
    converter = "to_langchain" if adapter == "toolkit_langchain" else "to_llamaindex"

    modules = loaded_after(f"from {adapter} import default_tools, {converter}")

    assert within(modules, (own,))
    assert within(modules, foreign) == []


@pytest.mark.parametrize("adapter", ["toolkit_langchain", "toolkit_llamaindex"])
def test_importing_an_adapter_alone_loads_no_framework_yet(adapter: str) -> None:
    assert within(loaded_after(f"import {adapter}"), FRAMEWORKS) == []


def test_a_converter_does_not_load_the_host_before_a_sync_call() -> None:
    modules = loaded_after("from toolkit_langchain import to_langchain")

    assert within(modules, ("toolkit_core.defaults", "toolkit_core.capabilities")) == []


def test_every_public_name_of_the_core_can_be_imported() -> None:
    code = "import toolkit_core\nfor name in toolkit_core.__all__: getattr(toolkit_core, name)"

    assert "toolkit_core" in loaded_after(code)


def test_without_the_modules_of_posix_the_host_says_what_it_needs_and_the_rest_works() -> None:
    code = """
import sys
sys.modules["fcntl"] = None
import toolkit_core
try:
    toolkit_core.default_tools
except ImportError as e:
    assert "Linux or macOS" in str(e), e
else:
    raise AssertionError("the host was loaded")
toolkit_core.function_tool, toolkit_core.InMemorySandbox
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
