"""Characters and spellings that people and models confuse, and the words for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_QUOTES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02", '"'),
    "`": "'",
}
_DASHES: Final = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d", "-")
_INVISIBLE: Final = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f")
_SPACES: Final = re.compile(r"\s+")
_ODD_BLANKS: Final = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_ODD_BLANK: Final = re.compile(f"([{_ODD_BLANKS}])")
_TABLES: Final = {
    "quotes": str.maketrans(_QUOTES),
    "dashes": str.maketrans(_DASHES),
    "invisible": str.maketrans(_INVISIBLE),
}


@dataclass(frozen=True)
class Look:
    """One way in which texts differ and look the same: how to fold it away, and what to say of it."""

    fold: Callable[[str], str]
    say: Callable[[str, str], str]


def _name(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'unnamed')}"


def _characters(what: str, of: dict[str, str] | dict[str, None]) -> Callable[[str, str], str]:
    def say(old: str, file: str) -> str:
        theirs = [c for c in dict.fromkeys(file) if c in of and c not in old]
        mine = [c for c in dict.fromkeys(old) if c in of and c not in file]
        parts = [f"the file has {', '.join(map(_name, theirs))}"] if theirs else []
        parts += [f"old_text has {', '.join(map(_name, mine))}"] if mine else []
        return f"{what} ({'; '.join(parts)})" if parts else what

    return say


def _blanks(old: str, file: str) -> str:
    if "\t" in file and "\t" not in old:
        return "whitespace (the file has tabs where old_text has spaces)"
    if "\t" in old and "\t" not in file:
        return "whitespace (the file has spaces where old_text has tabs)"
    odd = [c for c in dict.fromkeys(file) if c.isspace() and c not in old and c not in " \t\r\n"]
    if odd:
        return f"whitespace (the file has {', '.join(map(_name, odd))})"
    stripped = [line.rstrip() for line in old.split("\n")] == [line.rstrip() for line in file.split("\n")]
    if stripped:
        return "whitespace at the end of a line"
    return "whitespace (the number of blanks or the indentation)"


def _unicode_form(old: str, file: str) -> str:
    if unicodedata.normalize("NFC", old) in unicodedata.normalize("NFC", file):
        decomposed = unicodedata.is_normalized("NFC", old)
        one, other = ("decomposed", "composed") if decomposed else ("composed", "decomposed")
        return f"Unicode form (the file has {one} characters, old_text {other} ones: NFD and NFC)"
    return "Unicode form (compatibility characters such as ligatures or full-width letters)"


def _normalized(text: str) -> str:
    """NFKC, but for the blanks that it would make plain: those are told as such."""
    return "".join(
        part if part in _ODD_BLANKS else unicodedata.normalize("NFKC", part) for part in _ODD_BLANK.split(text) if part
    )


def _drop_backslashes(text: str) -> str:
    return text.replace("\\", "")


_LOOKS: Final[tuple[Look, ...]] = (
    Look(lambda text: text.translate(_TABLES["invisible"]), _characters("invisible characters", _INVISIBLE)),
    Look(lambda text: text.translate(_TABLES["quotes"]), _characters("quotation marks", _QUOTES)),
    Look(lambda text: text.translate(_TABLES["dashes"]), _characters("dashes", _DASHES)),
    Look(_normalized, _unicode_form),
    Look(_drop_backslashes, lambda _old, _file: "backslashes (escapes)"),
    Look(str.casefold, lambda _old, _file: "letter case"),
    Look(lambda text: _SPACES.sub("", text), _blanks),
)


def fold(text: str) -> str:
    """The text with everything folded away that may be confused."""
    if text.isascii():  # most lines; the same in a fraction of the time
        return "".join(text.replace("\\", "").replace("`", "'").casefold().split())
    for look in _LOOKS:
        text = look.fold(text)
    return text


def _folded_but(text: str, left_out: Look) -> str:
    for look in _LOOKS:
        if look is not left_out:
            text = look.fold(text)
    return text


def differences(old: str, file: str, place: str) -> str:
    """What keeps an old text from matching lines that look like it: every cause that matters."""
    causes = [look.say(old, file) for look in _LOOKS if _folded_but(old, look) not in _folded_but(file, look)]
    if not causes:
        causes = [look.say(old, file) for look in _LOOKS if look.fold(old) in look.fold(file)][:1]
    return f"{place} differs from it only in {' and in '.join(causes) if causes else 'small ways'}."
