"""Text and data inside a page, so that nothing in them is markup or script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def inert_json(value: Any) -> str:
    r"""JSON that can stand in a script element of type application/json.

    `<`, `>` and `&` are written as `\u003c` and so on, so that no `</script>` or `<!--` can end or change the element
    (HTML, 4.12.1.3 "Restrictions for contents of script elements"); lone surrogates as escapes, so that the page has
    a UTF-8 form.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def source_hash(text: str) -> str:
    """The source expression that allows exactly this inline script or style (CSP level 3, 2.3.1)."""
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
