"""One search by content, in its thread: which engine, in what order, and what an empty answer left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.glob_pattern import GlobPattern, Step, parse_glob
from toolkit_core.host.grep_collect import CountCollector, FileFilter, RowCollector
from toolkit_core.host.regex_engine import SpansLinesError, search_with_re
from toolkit_core.host.ripgrep import PatternRefusedError, Ripgrep, grep_options, ignore_file
from toolkit_core.host.stoppable import Stop, StoppedError
from toolkit_core.host.walk import Found, Walk
from toolkit_core.limits import SEARCH_COUNT_ENTRIES, SEARCH_COUNT_SECONDS, SEARCH_SORT_SLACK_ROWS
from toolkit_core.ports.search import GrepFound, GrepQuery
from toolkit_core.search_text import path_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit_core.host.search_place import Place

Collector = RowCollector | CountCollector


@dataclass
class Grep:
    """One search.

    Args:
        query: What is asked.
        pattern: The file filter, parsed.
        place: Where it starts, open.
        engine: ripgrep, None where there is none.
        stop: When it has to end.
    """

    query: GrepQuery
    pattern: GlobPattern | None
    place: Place
    engine: Ripgrep | None
    stop: Stop

    def run(self) -> GrepFound:
        """Search; raises `ToolError` for a bad pattern."""
        include = self.query.include_ignored
        self._rules_hold = not include and not self.place.ignored
        self._skipped = self.place.skipped(self.pattern, include_ignored=include)
        self._chosen: frozenset[str] | None = None
        self._listings: list[Walk] = []
        names_ignored = self._rules_hold and self.place.names_ignored(self.pattern)
        self._named = not include and (names_ignored or not self._rules_hold)
        return self._search(by_walk=names_ignored or (self._rules_hold and self.place.has_uncommon_rules()))

    def _search(self, *, by_walk: bool) -> GrepFound:
        """Search what the engine's own walk finds, or what ours does."""
        self._listings.clear()
        if by_walk:
            try:
                self._chosen = frozenset(self._choose())
            except StoppedError:
                if self.stop.requested:
                    raise
                return GrepFound(incomplete="the walk")
        self._heed = self._rules_hold and self._chosen is None
        if self.engine is None:
            found = self._with_re("")
        else:
            try:
                found = self._with_ripgrep(self.engine)
            except PatternRefusedError as e:
                if e.wants_multiline:
                    raise _spans_lines() from e
                found = self._with_re(str(e))
        found = replace(found, named_ignored=self._named)
        return found if found.rows or found.counts or found.incomplete else self._explain(found)

    def _choose(self) -> Iterator[str]:
        """The files by the very walk that finds names: a filter spells out an ignored name, or rules are uncommon.

        It overrides the ignoring of what is named, but opens no ignored folder that is not.
        """
        step: Step | None = self._everything() if self.pattern is None else self.pattern.start
        steps: list[Step | None] = [step]
        for name in self.place.inner:
            step = step and step.enter(name)
        if self.place.inner and self.pattern is not None:
            steps.append(step)
        for start in steps:
            if start is not None:
                for path, *_ in self._walk(start, show_ignored=False):
                    yield self.place.prefix + path

    def _filter(self) -> FileFilter:
        return FileFilter(self.place, self.pattern, self._chosen)

    def _collector(self, stop_after: int) -> Collector:
        files = self._filter()
        if self.query.mode == "content":
            return RowCollector(files, stop_after, self.query.context_lines > 0)
        return CountCollector(files, stop_after, self.query.mode == "count")

    def _with_ripgrep(self, engine: Ripgrep) -> GrepFound:
        """All of it in parallel; where that is far more than asked for, the first of it in order of path."""
        collector = self._collector(self.query.limit + SEARCH_SORT_SLACK_ROWS)
        unreadable = self._ripgrep(engine, collector, sort=False)
        if unreadable is None and collector.matches > collector.stop_after:
            collector = self._collector(self.query.limit)
            unreadable = self._ripgrep(engine, collector, sort=True)
        return self._result(collector, unreadable, "ripgrep")

    def _ripgrep(self, engine: Ripgrep, collector: Collector, *, sort: bool) -> int | None:
        options = grep_options(self.query, self._skipped, heed=self._heed, sort=sort)
        lines = ignore_file(self.place, self.pattern, heed=self._heed)
        return engine.run(options, self.place, lines, collector.take, self.stop)

    def _with_re(self, refusal: str) -> GrepFound:
        collector = self._collector(self.query.limit)
        try:
            unreadable = search_with_re(self.query, self.place, self._names(), collector.take, self.stop)
        except SpansLinesError as e:
            raise _spans_lines() from e
        except PatternRefusedError as e:
            raise _bad_pattern(self.query.pattern, refusal, str(e)) from e
        if unreadable is not None:
            unreadable += sum(walk.unreadable for walk in self._listings)
        return self._result(collector, unreadable, "python re")

    def _names(self) -> Iterator[str]:
        """The files that the worker searches, in order of path."""
        if self.place.is_file:
            yield "/".join(self.place.inner)
            return
        if self._chosen is not None:
            yield from sorted(self._chosen, key=path_order)
            return
        files = FileFilter(self.place, self.pattern)
        for path, *_ in self._walk(self._everything(), show_ignored=False):
            if files.accepts(self.place.prefix + path):
                yield self.place.prefix + path

    def _everything(self) -> Step:
        return parse_glob("**/*").start

    def _walk(self, step: Step, *, show_ignored: bool) -> Iterator[Found]:
        walk = Walk(skipped=self._skipped, heed=self._rules_hold, show_ignored=show_ignored, files_only=True)
        walk.hidden = self.place.hidden
        walk.check = (lambda: self._check_count(walk)) if show_ignored else self.stop.check
        self._listings.append(walk)
        scope = self.place.scope if self._rules_hold else None
        return walk.run(self.place.start, step, scope, prefix=self.place.prefix)

    def _check_count(self, walk: Walk) -> None:
        self.stop.check()
        if walk.entries > SEARCH_COUNT_ENTRIES:
            raise StoppedError

    def _result(self, collector: Collector, unreadable: int | None, engine: str) -> GrepFound:
        truncated = collector.matches > self.query.limit
        incomplete = "" if unreadable is not None or truncated else "the search"
        items, dropped = collector.result(self.query.limit)
        found = GrepFound(
            truncated=truncated,
            skipped_binary=collector.binary,
            skipped_unreadable=(unreadable or 0) + dropped,
            engine=engine,
            incomplete=incomplete,
        )
        if isinstance(collector, RowCollector):
            return replace(found, rows=items)
        return replace(found, counts=items)

    def _explain(self, found: GrepFound) -> GrepFound:
        """What an empty answer did not search: ignored files, binary ones."""
        with self.stop.within(SEARCH_COUNT_SECONDS):
            ignored, ignored_bounded = self._count_ignored()
        if self._heed and any(walk.uncommon for walk in self._listings):
            return self._search(by_walk=True)  # the engine may have left out what git would not
        with self.stop.within(SEARCH_COUNT_SECONDS):
            binary, binary_bounded = self._count_binary()
        return replace(
            found,
            skipped_ignored=ignored,
            skipped_binary=max(binary, found.skipped_binary),
            counts_incomplete=ignored_bounded or binary_bounded,
        )

    def _count_ignored(self) -> tuple[int, bool]:
        if self.place.is_file or (not self._rules_hold and not self._skipped):
            return 0, False
        files = FileFilter(self.place, self.pattern)
        number = 0
        try:
            for path, _, ignored, _ in self._walk(self._everything(), show_ignored=True):
                full = self.place.prefix + path
                number += ignored and files.accepts(full) and full not in (self._chosen or ())
        except StoppedError:
            if self.stop.requested:
                raise
            return number, True
        return number, False

    def _count_binary(self) -> tuple[int, bool]:
        """Files with a NUL, as ripgrep sees them; each is read up to its first one."""
        if self.engine is None or self.stop.expired:
            return 0, self.engine is not None
        listing = replace(self.query, pattern=r"(?-u)\x00", mode="files_with_matches", fixed_strings=False)
        collector = CountCollector(self._filter(), SEARCH_COUNT_ENTRIES, with_numbers=False)
        options: Sequence[str] = [
            "--text",
            *grep_options(replace(listing, multiline=False), self._skipped, heed=self._heed, sort=False),
        ]
        lines = ignore_file(self.place, self.pattern, heed=self._heed)
        ended = self.engine.run(options, self.place, lines, collector.take, self.stop)
        return collector.matches, ended is None


def _bad_pattern(pattern: str, refusal: str, python_refusal: str) -> ToolError:
    hint = "Mend the pattern, or set fixed_strings to search for it as plain text."
    if not refusal:
        return ToolError(f"The pattern is no valid regular expression: {python_refusal}", code="invalid_arguments")
    return ToolError(
        f"The pattern is no valid regular expression.\nripgrep: {refusal}\nPython re: {python_refusal}",
        code="invalid_arguments",
        hint=hint,
    )


def _spans_lines() -> ToolError:
    return ToolError(
        "The pattern holds a line feed, and the search goes line by line: it could never match.",
        code="invalid_arguments",
        hint="Set multiline to true to match across lines.",
    )
