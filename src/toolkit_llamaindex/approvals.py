"""Approval of calls, over the workflow's events.

With `to_llamaindex(tools, policy=policy)` a call that the policy asks about appears on the event stream as an
`ApprovalRequestEvent`; the program answers it::

    async for event in handler.stream_events():
        if isinstance(event, ApprovalRequestEvent):
            handler.ctx.send_event(event.approve())

or with `event.edit({...})`, `event.reject("why")`, `event.respond("what the model reads instead")`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent
from pydantic import Field

from toolkit_core.errors import ErrorInfo, ToolError
from toolkit_core.result import ToolResult
from toolkit_core.schema import plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit_core.tool import Tool
    from toolkit_llamaindex._run import CallSite

_log = logging.getLogger("toolkit_llamaindex")

Action = Literal["allow", "ask", "deny"]


class Decision(Protocol):
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
    """A policy, as the gate uses it; `toolkit_core.Policy` is one."""

    async def decide(self, tool: Tool[Any], arguments: Mapping[str, Any], /) -> Decision:
        """Judge one call."""
        ...


class ApprovalResponseEvent(HumanResponseEvent):
    """A person's answer to an `ApprovalRequestEvent`.

    Attributes:
        approval_id: As in the request.
        action: approve; edit (run with `arguments` instead); reject; respond (the model reads `text` as the
            tool's result, and the tool does not run).
        arguments: The arguments of an edit.
        text: The reason of a rejection, or the response.
    """

    approval_id: str
    action: Literal["approve", "edit", "reject", "respond"]
    arguments: dict[str, Any] | None = None
    text: str = ""

    @property
    def call(self) -> str:
        """The call's part of the id: it stays, while the rest changes with what the call would act on."""
        return self.approval_id.rpartition(":")[0]


class ApprovalRequestEvent(InputRequiredEvent):
    """A call waits for approval.

    Attributes:
        approval_id: Belongs to this call as it was judged; the answer carries it.
        tool_name: The tool.
        arguments: As the model sent them.
        subject: What the call acts on: the path that would be opened, the command, the URL.
        writes: Absolute paths that the call would write.
        reason: Why the policy asks.
        risk: inspect, modify or execute; "" for an unclassified tool.
        prefix: The request in a line, where programs for stock events look for it.
    """

    approval_id: str
    tool_name: str
    arguments: dict[str, Any]
    subject: str = ""
    writes: list[str] = Field(default_factory=list[str])
    reason: str = ""
    risk: str = ""
    prefix: str = ""

    def approve(self) -> ApprovalResponseEvent:
        """Let the call run as it is; it is judged again, and a deny still holds."""
        return ApprovalResponseEvent(approval_id=self.approval_id, action="approve")

    def edit(self, arguments: Mapping[str, Any]) -> ApprovalResponseEvent:
        """Let the call run with other arguments; they are judged again, and a deny still holds."""
        return ApprovalResponseEvent(approval_id=self.approval_id, action="edit", arguments=dict(arguments))

    def reject(self, text: str = "") -> ApprovalResponseEvent:
        """Refuse the call; the model reads the text."""
        return ApprovalResponseEvent(approval_id=self.approval_id, action="reject", text=text)

    def respond(self, text: str) -> ApprovalResponseEvent:
        """Give the model a result of one's own instead of the tool's."""
        return ApprovalResponseEvent(approval_id=self.approval_id, action="respond", text=text)


@dataclass(frozen=True)
class Verdict:
    """What the gate found.

    Attributes:
        arguments: What to call the tool with.
        subject: What was judged; the core refuses the call if it acts on something else by then.
        instead: The result, where the tool must not run.
    """

    arguments: object = None
    subject: str | None = None
    instead: ToolResult[Any] | None = None


async def judge(
    tool: Tool[Any], arguments: object, policy: Decider, site: CallSite, timeout_seconds: float | None
) -> Verdict:
    """Let a policy, and where it asks a person, decide on a call.

    Fails closed: a policy that raises refuses, and so does a question that nobody can be asked.

    Raises:
        Suspended: A person has to be asked first.
    """
    try:
        call = await _call_of(tool, arguments)
    except ToolError as e:  # the call would fail in the same way
        return Verdict(instead=ToolResult.failure(e.info, detail=e.detail))
    waiter_id = f"{site.wait_key}#approval"
    if site.waits_already(waiter_id):  # a person was asked: a no counts, even if the policy would allow by now
        return await _ask(tool, call, "", policy, site, waiter_id, timeout_seconds)
    decision = await _decide(policy, tool, call)
    if decision.action == "allow":
        return Verdict(call.arguments, call.subject)
    if decision.action == "ask" and site.in_step:
        return await _ask(tool, call, decision.reason, policy, site, waiter_id, timeout_seconds)
    if decision.action == "ask":
        return _refused(f"{tool.name} needs approval, and nobody can be asked here", decision.reason)
    return _refused(f"{tool.name} is not allowed to do this", decision.reason)


@dataclass(frozen=True)
class _Call:
    """A call as it was judged: its arguments exactly as they came, and in plain JSON for a person to see."""

    arguments: object
    shown: dict[str, Any]
    subject: str
    writes: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names all that a person is shown of the call."""
        text = json.dumps([self.shown, self.subject, self.writes], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True)
class _Decision:
    action: Action
    reason: str


async def _call_of(tool: Tool[Any], arguments: object) -> _Call:
    subject, writes = await tool.subject(arguments), await tool.writes(arguments)
    plain = plain_json(arguments)
    shown = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"input": plain}
    return _Call(arguments, shown, subject, writes)


async def _decide(policy: Decider, tool: Tool[Any], call: _Call) -> Decision:
    try:
        return await policy.decide(tool, cast("Mapping[str, Any]", call.arguments))
    except Exception as e:  # noqa: BLE001 - a policy that fails refuses: fail closed, and the run goes on
        _log.exception("the policy failed on a call of %s", tool.name)
        return _Decision("deny", f"the policy failed ({type(e).__name__})")


async def _ask(
    tool: Tool[Any],
    call: _Call,
    reason: str,
    policy: Decider,
    site: CallSite,
    waiter_id: str,
    timeout_seconds: float | None,
) -> Verdict:
    approval_id = f"{waiter_id}:{call.digest}"
    shown = ApprovalRequestEvent(
        approval_id=approval_id,
        tool_name=tool.name,
        arguments=call.shown,
        subject=call.subject,
        writes=list(call.writes),
        reason=reason,
        risk="" if tool.effects is None else tool.effects.risk,
        prefix=f"Run {tool.name}({call.subject})?" + (f" {reason}" if reason else ""),
    )
    try:
        answer = await site.wait(
            ApprovalResponseEvent,
            shown=shown,
            waiter_id=waiter_id,
            requirements={"call": waiter_id},
            timeout_seconds=timeout_seconds,
        )
    except TimeoutError:
        return _refused(f"nobody answered the request to run {tool.name}")
    if answer.action == "approve":
        return await _approved(tool, call, policy, unchanged=answer.approval_id == approval_id)
    if answer.action == "edit":
        return await _edited(tool, answer.arguments or {}, policy)
    if answer.action == "respond":
        return Verdict(instead=ToolResult.ok(answer.text))
    return _refused(f"a person refused this call of {tool.name}", answer.text)


async def _approved(tool: Tool[Any], call: _Call, policy: Decider, *, unchanged: bool) -> Verdict:
    """An approval holds for what was shown, and only where the policy, as it is by now, does not deny."""
    decision = await _decide(policy, tool, call)
    if decision.action == "deny":
        return _refused(f"{tool.name} is not allowed to do this, approved by a person or not", decision.reason)
    if unchanged:
        return Verdict(call.arguments, call.subject)
    hint = "Make the call again, so that it is judged as things are now."
    return _refused(f"what {tool.name} would act on is no longer what was approved (now {call.subject!r})", hint)


async def _edited(tool: Tool[Any], arguments: Mapping[str, Any], policy: Decider) -> Verdict:
    try:
        call = await _call_of(tool, arguments)
    except ToolError as e:
        return Verdict(instead=ToolResult.failure(e.info, detail=e.detail))
    decision = await _decide(policy, tool, call)
    if decision.action == "deny":
        return _refused(f"{tool.name} is not allowed to do this, edited by a person or not", decision.reason)
    return Verdict(call.arguments, call.subject)


def _refused(message: str, hint: str = "") -> Verdict:
    return Verdict(instead=ToolResult.failure(ErrorInfo("denied", message, hint)))
