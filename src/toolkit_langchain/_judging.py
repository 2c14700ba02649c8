"""One call before it runs: judged by the policy, put before a person where it asks, held to what was approved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit_core.errors import Suspended, ToolError
from toolkit_core.result import ToolResult
from toolkit_langchain.approvals import (
    STALE_HINT,
    Decider,
    Judgement,
    Requested,
    RequestMemory,
    approval_payload,
    argument_digest,
    judge,
    key_of,
    parse_reply,
    refused,
)
from toolkit_langchain.ask import answerable, suspending

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from toolkit_core.tool import Tool


@dataclass(frozen=True)
class Settled:
    """What became of a call.

    Attributes:
        arguments: What to run the tool with.
        subject: What the call is held to; None where the tool names nothing.
        instead: The result, where the tool must not run.
        approved: Whether a person approved it.
    """

    arguments: Any
    subject: str | None = None
    instead: ToolResult[Any] | None = None
    approved: bool = False


@dataclass(frozen=True)
class CallUnderJudgement:
    """One call, and what was noted of it when the model made it.

    Attributes:
        tool: The tool, or the facade of a foreign one.
        arguments: As the model sent them.
        call_id: The framework's id.
        config: The config of the graph's task.
        turn: The id of the model's message that made it.
        note: `action:digest` as judged before anybody was asked, "" where nothing was noted.
        shown: What the middleware put before a person.
        elsewhere: What LangChain's own middleware did, where `interrupt_on` was given this tool.
    """

    tool: Tool[Any]
    arguments: Any
    call_id: str
    config: RunnableConfig
    turn: str
    note: str
    shown: RequestMemory
    elsewhere: RequestMemory | None

    @property
    def thread(self) -> str:
        """The thread whose call this is."""
        return str(self.config.get("configurable", {}).get("thread_id", ""))

    @property
    def key(self) -> str:
        """Names the call within its thread, also where the provider gave it no id."""
        return key_of(self.call_id, self.arguments)

    def asked_in(self, memory: RequestMemory | None) -> Requested | None:
        """This very call as it was first put before a person, None where it was not."""
        asked = None if memory is None else memory.get(self.thread, self.key)
        now = Requested(self.turn, argument_digest(self.arguments), "")
        return asked if asked is not None and asked.same_call(now) else None


async def settle(call: CallUnderJudgement, policy: Decider) -> Settled:
    """Let the policy, and where it asks a person, decide.

    Raises:
        GraphInterrupt: A person has to be asked first; the call is replayed with the answer.
    """
    judged = await judge(call.tool, call.arguments, policy)
    if judged.failure is not None:
        return Settled(call.arguments, instead=judged.failure)
    if judged.action == "deny":
        return Settled(call.arguments, instead=_denied(call.tool, judged.reason))
    if (asked := call.asked_in(call.elsewhere)) is not None:
        return _approved(call, judged, asked.digest)  # the call would not have come here without an approval
    if judged.action == "allow" and not _was_asked(call):
        return Settled(call.arguments, _subject(call.tool, judged))
    return await _ask(call, judged, policy)


def _was_asked(call: CallUnderJudgement) -> bool:
    """Once asked, the answer counts, whatever the policy says when the call is replayed."""
    return call.asked_in(call.shown) is not None or call.note.startswith("ask:")


async def _ask(call: CallUnderJudgement, judged: Judgement, policy: Decider) -> Settled:
    if not answerable(call.config):
        hint = judged.reason or "Go on without it."
        return Settled(
            call.arguments, instead=refused(f"{call.tool.name} needs approval, and nobody can be asked", hint)
        )
    noted = call.note.partition(":")[2]
    now = Requested(call.turn, argument_digest(call.arguments), noted or judged.digest)
    expected = call.shown.first(call.thread, call.key, now).digest
    payload = approval_payload(call.tool, judged, call_id=call.call_id, arguments=call.arguments)
    try:
        reply = parse_reply(suspending(payload["id"], payload), call.tool.name)
    except Suspended as e:
        raise e.original from None
    except ToolError as e:
        return Settled(call.arguments, instead=refused(e.message))
    if reply.action == "approve":
        return _approved(call, judged, expected)
    if reply.action == "edit":
        return await _edited(call.tool, reply.arguments or {}, policy)
    if reply.action == "respond":
        return Settled(call.arguments, instead=ToolResult.ok(reply.text))
    return Settled(call.arguments, instead=refused(f"a person refused this call of {call.tool.name}", reply.text))


def _approved(call: CallUnderJudgement, judged: Judgement, expected: str) -> Settled:
    if judged.digest == expected:
        return Settled(call.arguments, _subject(call.tool, judged), approved=True)
    message = f"what {call.tool.name} would act on is no longer what was approved (now {judged.subject!r})"
    return Settled(call.arguments, instead=refused(message, STALE_HINT))


async def _edited(tool: Tool[Any], arguments: Mapping[str, Any], policy: Decider) -> Settled:
    """A person wrote these arguments: a deny still holds, and nobody is asked again."""
    judged = await judge(tool, arguments, policy)
    if judged.failure is not None:
        return Settled(arguments, instead=judged.failure)
    if judged.action == "deny":
        return Settled(arguments, instead=_denied(tool, judged.reason))
    return Settled(dict(arguments), _subject(tool, judged), approved=True)


def _denied(tool: Tool[Any], reason: str) -> ToolResult[Any]:
    return refused(f"{tool.name} is not allowed to do this", reason)


def _subject(tool: Tool[Any], judged: Judgement) -> str | None:
    return judged.subject if tool.has_subject else None
