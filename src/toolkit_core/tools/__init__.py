"""The built-in tools: one a private file, each a factory over its port."""

from toolkit_core.tools._ask_user_question import ask_user_question_tool
from toolkit_core.tools._browse import browse_tool
from toolkit_core.tools._commitments import commitments_tool
from toolkit_core.tools._edit_file import edit_file_tool
from toolkit_core.tools._editor_files import with_editor
from toolkit_core.tools._glob import glob_tool
from toolkit_core.tools._grep import grep_tool
from toolkit_core.tools._memory import memory_instructions, memory_read_tool, memory_write_tool
from toolkit_core.tools._process import (
    process_read_tool,
    process_start_tool,
    process_stop_tool,
    process_write_tool,
)
from toolkit_core.tools._read_file import read_file_tool
from toolkit_core.tools._read_record import ReadRecord
from toolkit_core.tools._recall import recall_tool
from toolkit_core.tools._shell import bash_tool, shell_tool
from toolkit_core.tools._tool_search import catalogued, tool_search_tool
from toolkit_core.tools._web_fetch import web_fetch_tool
from toolkit_core.tools._web_search import web_search_tool
from toolkit_core.tools._write_file import write_file_tool

__all__ = [
    "ReadRecord",
    "ask_user_question_tool",
    "bash_tool",
    "browse_tool",
    "catalogued",
    "commitments_tool",
    "edit_file_tool",
    "glob_tool",
    "grep_tool",
    "memory_instructions",
    "memory_read_tool",
    "memory_write_tool",
    "process_read_tool",
    "process_start_tool",
    "process_stop_tool",
    "process_write_tool",
    "read_file_tool",
    "recall_tool",
    "shell_tool",
    "tool_search_tool",
    "web_fetch_tool",
    "web_search_tool",
    "with_editor",
    "write_file_tool",
]
