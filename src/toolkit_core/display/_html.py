"""Parts as HTML: escaped, without scripts, style sheets or remote sources, colours over an inherited background."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from toolkit_core.display._inert import inert, last_lines, line, lines, rows
from toolkit_core.display._parts import (
    Code,
    Diff,
    Failure,
    Heading,
    Note,
    Part,
    Picture,
    Progressing,
    Prose,
    Table,
)
from toolkit_core.limits import DISPLAY_IMAGE_BASE64_CHARS, DISPLAY_PROGRESS_LINES

_GREEN = "rgba(46,160,67,0.22)"
_RED = "rgba(248,81,73,0.22)"
_BLUE = "rgba(56,139,253,0.20)"
_GREY = "rgba(128,128,128,0.12)"
_EDGE = "rgba(128,128,128,0.45)"
_ERROR_EDGE = "rgba(248,81,73,0.9)"
_BAR = "rgba(56,139,253,0.75)"
_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace"
_CODE = f"margin:0;padding:2px 0;text-align:left;background:none;border:none;color:inherit;{_MONO}"
_KEPT = "white-space:pre;overflow-x:auto"
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere"
_CELL = f"text-align:left;vertical-align:top;padding:2px 10px 2px 0;border:none;border-bottom:1px solid {_GREY}"
_TABLE = "border-collapse:collapse;border:none;text-align:left;color:inherit;font-size:inherit;margin:0"
_DIM = "opacity:0.7"
_WORD_CHARS = 40  # half of a page's width, in code
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def page(parts: Sequence[Part], *, failed: bool = False) -> str:
    """The parts in a box; a failure's has a red edge."""
    edge = _ERROR_EDGE if failed else _EDGE
    shown = "".join(map(_part, parts))
    return f"<div style='border-left:3px solid {edge};padding:2px 0 2px 10px;text-align:left'>{shown}</div>"


def _part(part: Part) -> str:
    match part:
        case Heading():
            return _heading(part)
        case Note():
            return _div(_DIM, line(part.text))
        case Prose():
            return _block("div", f"{_WRAPPED};margin:4px 0", part.text)
        case Code():
            return _code(part)
        case Diff():
            return _diff(part.text)
        case Table():
            return _table(part)
        case Failure():
            return _failure(part)
        case Picture():
            return _picture(part)
        case Progressing():
            return _progress(part)


def _heading(part: Heading) -> str:
    aside = f" <span style='{_DIM}'>{escape(line(part.aside))}</span>" if part.aside else ""
    return f"<div><b>{escape(line(part.text))}</b>{aside}</div>"


def _code(part: Code) -> str:
    label = _div(f"{_DIM};margin-top:4px", inert(part.label)) if part.label else ""
    return label + _block("pre", f"{_CODE};{_WRAPPED if part.wraps else _KEPT}", part.text)


def _block(tag: str, style: str, text: str) -> str:
    kept, more = lines(text)
    shown = escape("\n".join(kept))
    return f"<{tag} style='{style}'>{shown}</{tag}>{_more(more, 'lines')}"


def _diff(text: str) -> str:
    kept, more = lines(text)
    in_file_head = True
    shown: list[str] = []
    for each in kept:
        in_file_head = not each.startswith("@") and (in_file_head and each.startswith(("---", "+++")))
        shown.append(_diff_line(each, plain=in_file_head))
    return f"<div style='{_CODE};{_KEPT}'>{''.join(shown)}</div>{_more(more, 'lines')}"


def _diff_line(text: str, *, plain: bool) -> str:
    colour = "" if plain else {"+": _GREEN, "-": _RED, "@": _BLUE}.get(text[:1], "")
    style = f" style='background:{colour}'" if colour else ""
    return f"<div{style}>{escape(text) or '&nbsp;'}</div>"


def _table(part: Table) -> str:
    kept, more = rows(part.rows)
    head = "".join(f"<th style='{_CELL};{_DIM};font-weight:normal'>{escape(line(text))}</th>" for text in part.heads)
    space = "white-space:pre-wrap" if part.is_code else "white-space:pre-line"
    cells = ("".join(f"<td style='{_CELL};{space}{_breaks(cell)}'>{escape(cell)}</td>" for cell in row) for row in kept)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    style = f"{_TABLE};{_MONO}" if part.is_code else _TABLE
    return f"<table style='{style}'><tr>{head}</tr>{body}</table>{_more(more, 'rows')}"


def _breaks(cell: str) -> str:
    """Words stay whole, but for what would push the other columns out of the page."""
    return ";overflow-wrap:anywhere" if max(map(len, cell.split()), default=0) > _WORD_CHARS else ""


def _failure(part: Failure) -> str:
    head = f"<b>Error ({escape(line(part.code))})</b>"
    hint = _block("div", f"{_WRAPPED};{_DIM}", part.hint) if part.hint else ""
    return f"<div>{head}</div>{_block('div', _WRAPPED, part.message)}{hint}"


def _picture(part: Picture) -> str:
    mime_type, encoded = part.block.get("mime_type"), part.block.get("base64")
    shows = mime_type in _IMAGE_TYPES and isinstance(encoded, str) and len(encoded) <= DISPLAY_IMAGE_BASE64_CHARS
    named = escape(line(part.line))
    if not shows:
        return f"<div>{named}</div>"
    source = f"data:{mime_type};base64,{escape(str(encoded))}"
    return f"<div><img src='{source}' alt='{named}' style='max-width:100%'></div>"


def _progress(part: Progressing) -> str:
    head = " ".join(filter(None, (part.kind, part.count, "" if part.ended else "...")))
    bar = ""
    if part.share is not None:
        filled = f"<div style='height:6px;width:{part.share:.1%};background:{_BAR}'></div>"
        bar = f"<div style='height:6px;max-width:24em;background:{_EDGE};margin:4px 0'>{filled}</div>"
    shown = escape("\n".join(last_lines(part.text, DISPLAY_PROGRESS_LINES))) if part.text else ""
    text = f"<pre style='{_CODE};{_KEPT}'>{shown}</pre>" if shown else ""
    return f"<div style='{_DIM}'>{escape(line(head))}</div>{bar}{text}"


def _div(style: str, text: str) -> str:
    return f"<div style='{style}'>{escape(text)}</div>"


def _more(count: int, what: str) -> str:
    return f"<div style='{_DIM}'>... {count:,} more {what}</div>" if count > 0 else ""
