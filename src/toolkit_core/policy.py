"""Policy: rules and a mode to one decision about one call.

A pure function of the tool, the arguments and the policy. No tool calls it: adapters and programs do, before
they call the tool.
"""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from toolkit_core.command_words import Split, split_command
from toolkit_core.errors import ToolError
from toolkit_core.trust_inputs import trust_input

if TYPE_CHECKING:
    from toolkit_core.tool import Tool

Action = Literal["allow", "ask", "deny"]
Mode = Literal["plan", "default", "accept_edits", "bypass"]

_URL_TOOLS: Final = frozenset({"web_fetch", "browse"})
_IDEOGRAPHIC_DOTS: Final[dict[int, str]] = dict.fromkeys(
    (0x3002, 0xFF0E, 0xFF61), "."
)  # UTS #46 takes them for a full stop
_MODES: Final = ("plan", "default", "accept_edits", "bypass")
_RULE: Final = re.compile(r"([A-Za-z0-9_*-]+)(?:\((.*)\))?", re.DOTALL)


@dataclass(frozen=True)
class Decision:
    """What to do with a call, and why in one sentence.

    `subject` is the one that was judged, "" where there was none: hand it on as `approved_subject`, so that
    what runs is what was approved.
    """

    action: Action
    reason: str
    subject: str = ""


@dataclass(frozen=True)
class Rule:
    """One rule: a tool's name, alone or with a pattern for its subject.

    `*` matches any characters, `/` too; a leading `**/` also matches nothing.
    """

    text: str
    name: str
    pattern: str | None

    @classmethod
    def of(cls, text: str) -> Rule:
        """Read `name` or `name(pattern)`. Raises ValueError for anything else."""
        found = _RULE.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no rule: write a tool's name, or name(pattern), as in 'shell(pytest *)'")
        return cls(text.strip(), found[1], found[2])

    def names(self, tool: Tool[Any]) -> bool:
        """Whether the rule is for this tool, under any of its names."""
        return any(_matches(self.name, name) for name in (tool.name, *tool.aliases))

    def matches(self, subject: str) -> bool:
        """Whether the pattern matches a subject; a rule without one matches all."""
        if self.pattern is None:
            return True
        pattern = self.pattern.removeprefix("./")
        if pattern.startswith("**/") and _matches(pattern[3:], subject):
            return True
        return _matches(pattern, subject)


def _matches(pattern: str, text: str) -> bool:
    """Wildcard match in time linear in both: the parts between stars, each found as early as may be."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    *middle, last = rest
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


@dataclass(frozen=True)
class _Call:
    """One call as rules see it."""

    tool: Tool[Any]
    subjects: tuple[str, ...]
    unknown: str
    split: Split | None
    writes: tuple[str, ...]

    def whole(self, rule: Rule) -> bool:
        return any(rule.matches(subject) for subject in self.subjects)

    def any_part(self, rule: Rule) -> bool:
        """Whether the call, or any simple command of it, is what the rule names."""
        parts = () if self.split is None else self.split.commands
        if self.whole(rule) or any(rule.matches(text) for words in parts for text in _spellings(words)):
            return True
        return self.tool.kind in _URL_TOOLS and any(rule.matches(_plain_url(subject)) for subject in self.subjects)

    def evaluable(self, rule: Rule) -> bool:
        return rule.pattern is None or not (self.unknown or (self.split is not None and self.split.uncertain))


@dataclass(frozen=True)
class Policy:
    """Rules and a mode.

    Attributes:
        allow: Calls that need no person: `["shell(pytest *)", "read_file"]`.
        ask: Calls that a person decides.
        deny: Calls that are refused: `["read_file(**/.env*)"]`.
        mode: What holds where no rule does. plan: reads pass, network asks, the rest is denied. default: reads
            and plain writes pass, the rest asks. accept_edits: also a call whose writes all lie inside the
            root. bypass: all pass.
        auto_approve: Asked for commands that would be asked about, `sandbox.auto_approves` say; True allows.

    A rule for an alias holds for the tool. A deny that cannot be evaluated asks. Every simple command of a
    compound one must match an allow. A write to a trust input asks in every mode but bypass.

    Raises:
        ValueError: A rule or the mode cannot be read.
    """

    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    mode: Mode = "default"
    auto_approve: Callable[[str], bool | Awaitable[bool]] | None = None
    _rules: dict[Action, tuple[Rule, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ValueError(f"{self.mode!r} is no mode; the modes are {', '.join(_MODES)}")
        for texts in (self.allow, self.ask, self.deny):
            if isinstance(texts, str):
                raise TypeError(f"rules are a list of strings, not the string {texts!r}")
        rules: dict[Action, tuple[Rule, ...]] = {
            "allow": tuple(map(Rule.of, self.allow)),
            "ask": tuple(map(Rule.of, self.ask)),
            "deny": tuple(map(Rule.of, self.deny)),
        }
        object.__setattr__(self, "_rules", rules)

    async def decide(self, tool: Tool[Any], arguments: object) -> Decision:
        """Judge one call. Never raises for what a model sent: what cannot be judged is asked about."""
        call = await _look(tool, arguments)
        decision = (
            self._denied(call)
            or self._asked(call)
            or self._trust_input(call)
            or self._allowed(call)
            or await self._by_mode(call)
        )
        return replace(decision, subject=call.subjects[0]) if call.subjects else decision

    def _for(self, action: Action, tool: Tool[Any]) -> list[Rule]:
        return [rule for rule in self._rules[action] if rule.names(tool)]

    def _denied(self, call: _Call) -> Decision | None:
        rules = self._for("deny", call.tool)
        for rule in rules:
            if rule.pattern is None or call.any_part(rule):
                return Decision("deny", f"the rule {rule.text} denies it")
        for rule in rules:
            if not call.evaluable(rule):
                why = (
                    call.unknown or f"the command cannot be split with certainty: {call.split and call.split.uncertain}"
                )
                return Decision("ask", f"the rule {rule.text} cannot be evaluated: {why}")
        return None

    def _asked(self, call: _Call) -> Decision | None:
        for rule in self._for("ask", call.tool):
            if rule.pattern is None or call.any_part(rule):
                return Decision("ask", f"the rule {rule.text} asks")
        return None

    def _trust_input(self, call: _Call) -> Decision | None:
        if self.mode == "bypass" or not call.writes or (self.mode == "plan" and self._allowed(call) is None):
            return None
        touched = trust_input(call.subjects[0])
        return (
            None if touched is None else Decision("ask", f"it writes {touched}, which agents, editors or shells obey")
        )

    def _allowed(self, call: _Call) -> Decision | None:
        rules = [rule for rule in self._for("allow", call.tool) if call.evaluable(rule)]
        for rule in rules:
            if rule.pattern is None or (call.split is None and call.whole(rule)):
                return Decision("allow", f"the rule {rule.text} allows it")
        if call.split is None or call.split.uncertain or not rules:
            return None
        if all(any(rule.matches(" ".join(words)) for rule in rules) for words in call.split.commands):
            return Decision("allow", "rules allow each of its commands")
        return None

    async def _by_mode(self, call: _Call) -> Decision:
        effects, mode = call.tool.effects, self.mode
        if mode == "bypass":
            return Decision("allow", "the mode is bypass")
        if effects is None:
            return Decision("deny" if mode == "plan" else "ask", f"{call.tool.name} does not say what it may do")
        if mode == "plan":
            return _by_plan(call.tool)
        if effects.executes and await self._approved(call):
            return Decision("allow", "it runs where it can do no harm")
        if mode == "accept_edits" and call.writes and _all_inside(call) and not (effects.executes or effects.network):
            return Decision("allow", "it writes inside the workspace only")
        for name in ("executes", "destructive", "network"):
            if getattr(effects, name):
                return Decision("ask", f"{call.tool.name} {_SAYING[name]}")
        return Decision("allow", "it reads only" if not effects.writes else "it is a plain write")

    async def _approved(self, call: _Call) -> bool:
        if self.auto_approve is None or not call.subjects:
            return False
        answer = self.auto_approve(call.subjects[0])
        return bool(await answer if inspect.isawaitable(answer) else answer)


_SAYING: Final = {
    "executes": "runs commands",
    "destructive": "may destroy what is there",
    "network": "uses the network",
}


def _by_plan(tool: Tool[Any]) -> Decision:
    effects = tool.effects
    if effects is not None and not (effects.writes or effects.destructive or effects.executes):
        return Decision("ask" if effects.network else "allow", f"planning: {tool.name} changes nothing here")
    return Decision("deny", f"the mode is plan, and {tool.name} changes things: propose it instead")


def _all_inside(call: _Call) -> bool:
    """A subject is relative only inside the root; an extra root's is absolute and is asked about."""
    return bool(call.subjects) and not call.subjects[0].startswith("/")


async def _look(tool: Tool[Any], arguments: object) -> _Call:
    """What rules need of a call: its subject under every spelling that names the same thing, its writes."""
    if not tool.has_subject:
        return _Call(tool, (), f"{tool.name} names no subject", None, ())
    try:
        subject = await tool.subject(arguments)
        writes = await tool.writes(arguments)
        claimed = (await tool.claims(arguments)).paths
    except ToolError as e:
        return _Call(tool, (), f"the call cannot be judged ({e.message})", None, ())
    commands = tool.effects is not None and tool.effects.executes
    split = split_command(subject) if commands else None
    return _Call(tool, tuple(dict.fromkeys((subject, *writes, *claimed))), "", split, writes)


def _plain_url(url: str) -> str:
    """A URL as a browser would read it: without blanks, dots folded, decoded, in small letters."""
    visible = "".join(url.split()).translate(_IDEOGRAPHIC_DOTS)
    return unicodedata.normalize("NFKC", unquote(visible)).lower()


def _spellings(words: tuple[str, ...]) -> tuple[str, ...]:
    """A deny for `rm *` holds for `/bin/rm -rf x` too."""
    name = words[0].rsplit("/", 1)[-1]
    return " ".join(words), " ".join((name, *words[1:]))
