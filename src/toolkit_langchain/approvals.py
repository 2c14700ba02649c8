"""Approval of calls: judged by a policy, decided by a person, and run only as they were judged.

Two ways, which may be combined::

    HumanInTheLoopMiddleware(interrupt_on(tools, policy))      # LangChain's own, batched or per call
    ToolkitMiddleware(".", policy=policy)                      # asks for each call as it starts

A call that the policy denies does not run in either. An edited call is judged again. A call that would act on
something else by the time it runs is refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from langchain_core.messages import AIMessage

from toolkit_core.errors import ErrorInfo, ToolError
from toolkit_core.limits import OPEN_ASKS_KEPT
from toolkit_core.result import ToolResult
from toolkit_core.schema import plain_json
from toolkit_langchain._blocking import blocking
from toolkit_langchain._resumed import Resumed

if TYPE_CHECKING:
    from langchain.agents.middleware import InterruptOnConfig
    from langchain_core.tools import BaseTool

    from toolkit_core.tool import Tool

__all__ = ["ApprovalGate", "Decider", "Judgement", "Reply", "approval_payload", "interrupt_on", "judge", "parse_reply"]

_log = logging.getLogger("toolkit_langchain")

Action = Literal["allow", "ask", "deny"]
DECISIONS: tuple[Literal["approve", "edit", "reject", "respond"], ...] = ("approve", "edit", "reject", "respond")


class Verdict(Protocol):
    """What a policy says of one call."""

    @property
    def action(self) -> Action:
        """Whether the call may run."""
        ...

    @property
    def reason(self) -> str:
        """Why, for the person and the model."""
        ...


class Decider(Protocol):
    """A policy, as adapters use it; `toolkit_core.Policy` is one."""

    async def decide(self, tool: Tool[Any], arguments: Any, /) -> Verdict:
        """Judge one call."""
        ...


@dataclass(frozen=True)
class Judgement:
    """One call as it was judged.

    Attributes:
        action: Whether it may run.
        reason: Why.
        subject: What it would act on: the path, the command, the URL.
        writes: Absolute paths that it would write.
        failure: Why it cannot be judged; it would fail in the same way.
        digest: Names the arguments, the subject and the writes together.
    """

    action: Action
    reason: str
    subject: str = ""
    writes: tuple[str, ...] = ()
    failure: ToolResult[Any] | None = None
    digest: str = ""


async def judge(tool: Tool[Any], arguments: object, policy: Decider | None) -> Judgement:
    """Judge a call; without a policy by the tool's effects alone. A policy that fails denies."""
    try:
        subject, writes = await tool.subject(arguments), await tool.writes(arguments)
    except ToolError as e:
        return Judgement("deny", e.message, failure=ToolResult.failure(e.info, detail=e.detail, data=e.data))
    action, reason = await _decided(tool, arguments, policy)
    text = json.dumps([argument_digest(arguments), subject, writes])
    return Judgement(action, reason, subject, writes, None, hashlib.sha256(text.encode()).hexdigest()[:32])


async def _decided(tool: Tool[Any], arguments: object, policy: Decider | None) -> tuple[Action, str]:
    if policy is None:
        return ("ask", f"{tool.name} needs approval") if asks_by_effects(tool) else ("allow", "")
    try:
        verdict = await policy.decide(tool, arguments)
    except Exception as e:  # noqa: BLE001 - a policy that fails denies: fail closed, and the run goes on
        _log.exception("the policy failed on a call of %s", tool.name)
        return "deny", f"the policy failed ({type(e).__name__})"
    return verdict.action, verdict.reason


def asks_by_effects(tool: Tool[Any]) -> bool:
    """Without a policy: whether the tool destroys, executes, uses the network, or does not say what it does."""
    effects = tool.effects
    return effects is None or effects.destructive or effects.executes or effects.network


def argument_digest(arguments: object) -> str:
    """A short name of the exact arguments."""
    text = json.dumps(shown_arguments(arguments), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def shown_arguments(arguments: object) -> dict[str, Any]:
    """The arguments in plain JSON, as a person is shown them and a checkpoint keeps them."""
    try:
        plain = plain_json(arguments)
    except TypeError as e:
        return {"input": f"(cannot be shown: {e})"}
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"input": plain}


def approval_payload(tool: Tool[Any], judged: Judgement, *, call_id: str, arguments: object) -> dict[str, Any]:
    """What the person's side sees of a call that waits, under `__interrupt__`."""
    return {
        "type": "tool_approval",
        "id": f"{call_id}:approval",
        "tool_call_id": call_id,
        "name": tool.name,
        "args": shown_arguments(arguments),
        "description": describe(tool, judged),
        "subject": judged.subject,
        "writes": list(judged.writes),
        "reason": judged.reason,
        "risk": "" if tool.effects is None else tool.effects.risk,
        "allowed_decisions": list(DECISIONS),
    }


def describe(tool: Tool[Any], judged: Judgement) -> str:
    """The call in a few lines for a person: what it acts on, what it writes, why it is asked about."""
    if judged.failure is not None:
        return f"{tool.name} cannot run as it was called: {judged.reason}"
    lines = [f"{tool.name}: {judged.subject}" if judged.subject else tool.name]
    lines += [f"writes {path}" for path in judged.writes]
    if judged.reason:
        lines.append(judged.reason)
    return "\n".join(lines)


@dataclass(frozen=True)
class Reply:
    """What a person decided. `reject` stands for everything that is no decision."""

    action: Literal["approve", "edit", "reject", "respond"]
    arguments: dict[str, Any] | None = None
    text: str = ""


def parse_reply(reply: object, tool_name: str) -> Reply:
    """Read a decision: LangChain's shapes (`{"type": "approve"}`, `{"decisions": [...]}`), True, or the word alone."""
    if reply is True:
        return Reply("approve")
    if isinstance(reply, str):
        word = reply.strip().lower()
        return Reply("approve") if word == "approve" else Reply("reject", text="" if word == "reject" else reply)
    if not isinstance(reply, Mapping):
        return Reply("reject", text="the answer was not understood")
    given = cast("Mapping[str, Any]", reply)
    decisions = given.get("decisions")
    if isinstance(decisions, list) and len(cast("list[object]", decisions)) == 1:
        return parse_reply(cast("list[object]", decisions)[0], tool_name)
    return _reply_of_mapping(given, tool_name)


def _reply_of_mapping(given: Mapping[str, Any], tool_name: str) -> Reply:
    kind, message = given.get("type"), given.get("message", "")
    text = message if isinstance(message, str) else ""
    if kind == "approve":
        return Reply("approve")
    if kind == "respond":
        return Reply("respond", text=text)
    if kind == "reject":
        return Reply("reject", text=text)
    if kind == "edit":
        edited = given.get("edited_action", given)
        arguments = cast("Mapping[str, Any]", edited).get("args") if isinstance(edited, Mapping) else None
        name = cast("Mapping[str, Any]", edited).get("name", tool_name) if isinstance(edited, Mapping) else None
        if isinstance(arguments, Mapping) and name == tool_name:
            return Reply("edit", dict(cast("Mapping[str, Any]", arguments)))
    return Reply("reject", text="the answer was not understood")


def refused(message: str, hint: str = "") -> ToolResult[Any]:
    """A denial as the model reads it."""
    return ToolResult.failure(ErrorInfo("denied", message, hint))


UNASKED_HINT = (
    "Make the call again, so that a person is asked. (An approval given in another process is kept only with "
    "ToolkitMiddleware(policy=...), and an agent over these tools needs HumanInTheLoopMiddleware.)"
)
STALE_HINT = "Make the call again, so that it is judged as things are now."


@dataclass(frozen=True)
class Requested:
    """A call that a person was shown.

    Attributes:
        turn: The id of the model's message that made it: call ids alone are not unique with every provider.
        arguments: Names the exact arguments.
        digest: Names what was judged.
    """

    turn: str
    arguments: str
    digest: str

    def same_call(self, other: Requested) -> bool:
        """Whether both are the same call of the same turn, whatever it would act on by now."""
        return (self.turn, self.arguments) == (other.turn, other.arguments)


class RequestMemory:
    """What was put before a person, by thread and call, so that a replay and the run compare with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: OrderedDict[tuple[str, str], Requested] = OrderedDict()

    def first(self, thread: str, call_id: str, request: Requested) -> Requested:
        """The request as it was first made; a replay makes it again."""
        with self._lock:
            before = self._requests.get((thread, call_id))
            if before is not None and before.same_call(request):
                return before
            self._requests[thread, call_id] = request
            while len(self._requests) > OPEN_ASKS_KEPT:
                self._requests.popitem(last=False)
            return request

    def get(self, thread: str, call_id: str) -> Requested | None:
        """What was put before a person of this call, None where nothing was."""
        with self._lock:
            return self._requests.get((thread, call_id))

    def forget(self, thread: str, call_id: str) -> None:
        """Drop what an earlier turn put before a person under this id."""
        with self._lock:
            self._requests.pop((thread, call_id), None)


def key_of(call_id: str | None, arguments: object) -> str:
    """Names a call within its thread: its id, and its arguments where the provider gave it none."""
    return call_id or f"arguments:{argument_digest(arguments)}"


def thread_now() -> str:
    """The thread of the graph that runs here."""
    from langgraph.config import get_config

    try:
        return str(get_config().get("configurable", {}).get("thread_id", ""))
    except RuntimeError:
        return ""


@dataclass(frozen=True)
class ApprovalGate:
    """Stands in a tool that `interrupt_on` was given: what a person approved is what runs, and a deny holds."""

    policy: Decider | None
    memory: RequestMemory = field(default_factory=RequestMemory, compare=False, repr=False)
    resumed: Resumed = field(default_factory=Resumed, compare=False, repr=False)

    async def check(
        self, tool: Tool[Any], arguments: object, *, thread: str, call_id: str, approved: bool = False
    ) -> tuple[ToolResult[Any] | None, str | None]:
        """A refusal or None, and the subject that the call is held to.

        A call that differs from what was put before a person was edited by one: only a deny stops it. One that
        the policy asks about and that these tools did not see put before a person is refused, unless `approved`
        says that `ToolkitMiddleware` asked.
        """
        asked = self.memory.get(thread, key_of(call_id, arguments))
        judged = await judge(tool, arguments, self.policy)
        if judged.failure is not None:
            return judged.failure, None
        if judged.action == "deny":
            return refused(f"{tool.name} is not allowed to do this", judged.reason), None
        if judged.action == "ask" and asked is None and not approved:
            return refused(f"{tool.name} needs an approval that is not known here", UNASKED_HINT), None
        if asked is not None and asked.arguments == argument_digest(arguments) and asked.digest != judged.digest:
            return refused(f"{judged.subject!r} is not what was approved", STALE_HINT), None
        return None, judged.subject

    def remember(self, thread: str, key: str, request: Requested) -> None:
        """Note what is put before a person now.

        When a run resumes, the person was shown the call earlier: what is not known of that here (another process
        asked) cannot be made up for by judging it as things are by now.
        """
        resumed = self.resumed.by_this_answer(thread, request.turn)
        before = self.memory.get(thread, key)
        if before is not None and before.same_call(request):
            return
        if resumed:
            self.memory.forget(thread, key)
        else:
            self.memory.first(thread, key, request)


def interrupt_on(tools: Iterable[BaseTool], policy: Decider | None = None) -> dict[str, bool | InterruptOnConfig]:
    """What LangChain's `HumanInTheLoopMiddleware` asks about, derived from the tools.

    Without a policy every call is asked about of a tool that destroys, executes, uses the network or is
    unclassified. With one each call is judged: allowed ones run, asked ones pause, and denied ones are refused
    by the tool itself. A request shows what the call acts on and what it writes. The converted tools remember
    the policy, so that an edited call is judged again and a stale approval is refused.

    Args:
        tools: Tools from `to_langchain`, the same objects that the agent is given.
        policy: Decides which calls are asked about.

    Raises:
        TypeError: A tool is not from `to_langchain`.
        ValueError: A tool is held to another policy already.
    """
    from toolkit_langchain._tool import ToolkitTool

    listed: list[ToolkitTool] = []
    for tool in tools:
        if not isinstance(tool, ToolkitTool):
            raise TypeError(f"interrupt_on takes tools from to_langchain(...), not {type(tool).__name__}")
        if tool.gate is not None and tool.gate.policy != policy:
            raise ValueError(f"{tool.name} is held to another policy already: convert the tools anew for this one")
        listed.append(tool)
    settings: dict[str, bool | InterruptOnConfig] = {}
    new = ApprovalGate(policy)
    for tool in listed:
        core = cast("Tool[Any]", tool.core)
        if policy is None and not asks_by_effects(core):
            continue
        gate = tool.gate or new
        tool.bind_gate(gate)
        settings[tool.name] = _settings(core, gate)
    return settings


def _settings(tool: Tool[Any], gate: ApprovalGate) -> InterruptOnConfig:
    def remembered(call: Mapping[str, Any], state: Any) -> Judgement:
        judged = blocking(judge(tool, call["args"], gate.policy))
        if judged.failure is None and judged.action == "ask":
            request = Requested(turn_of(state), argument_digest(call["args"]), judged.digest)
            gate.remember(thread_now(), key_of(call["id"], call["args"]), request)
        return judged

    def when(request: Any) -> bool:
        call = request.tool_call
        asked = gate.memory.get(thread_now(), key_of(call["id"], call["args"]))
        now = Requested(turn_of(request.state), argument_digest(call["args"]), "")
        if asked is not None and asked.same_call(now):
            return True  # LangChain needs the same answer again when the run resumes
        judged = remembered(call, request.state)
        return judged.failure is None and judged.action == "ask"

    def description(tool_call: Any, state: Any, runtime: Any) -> str:
        return describe(tool, remembered(tool_call, state))

    settings: InterruptOnConfig = {"allowed_decisions": list(DECISIONS), "description": description}
    if gate.policy is not None:
        settings["when"] = when
    return settings


def turn_of(state: object) -> str:
    """The id of the newest message of the model, "" where there is none."""
    if not isinstance(state, Mapping):
        return ""
    messages: list[Any] = cast("Mapping[str, Any]", state).get("messages") or []
    return next((str(m.id) for m in reversed(messages) if isinstance(m, AIMessage)), "")
