"""Reading a URL as strictly as the strictest reader does: pure, no I/O.

Where two URL readers disagree about the host, a check by one and a connection by the other is a hole. So
whatever browsers, curl and Python read differently (backslashes, missing or extra slashes, user names,
percent signs in the host, short IPv4 forms, compatibility characters) is refused, not interpreted.

Sources: RFC 3986, the WHATWG URL standard, RFC 5891 (IDNA2008), RFC 6761 and RFC 8375 (special names), the
Fetch standard's list of blocked ports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, urljoin

import idna

from toolkit_core.errors import ToolError
from toolkit_core.host.egress.addresses import Address, parse
from toolkit_core.limits import WEB_URL_MAX_CHARS

Scheme = Literal["http", "https"]

_SHAPE: Final = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# control characters, spaces of any kind, invisible and direction marks, backslash
_FORBIDDEN: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0\xad\\\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
)
_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]*))?")
_NAMED: Final = re.compile(r"([^:\[\]@%]*)(?::([0-9]*))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAME_MAX_CHARS: Final = 253

_PRIVATE_SUFFIXES: Final = ("localhost", "local", "internal", "home.arpa", "lan", "home", "corp", "intranet", "private")

# the Fetch standard's blocked ports, then services that speak no HTTP or trust whoever reaches them
_PORTS: Final = """
    0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117
    119 123 135 137 138 139 143 161 179 389 427 445 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587
    601 636 873 989 990 993 995 1433 1521 1719 1720 1723 2049 2375 2376 2379 2380 3306 3389 3659 4045 4190 5060
    5061 5432 5900 5985 5986 6000 6379 6566 6665 6666 6667 6668 6669 6679 6697 10080 10250 11211 27017
"""
_BLOCKED_PORTS: Final = frozenset(int(port) for port in _PORTS.split())


@dataclass(frozen=True)
class Target:
    """A URL that was read without doubt.

    Attributes:
        scheme: "http" or "https".
        host: The name in lower case as the resolver is asked (IDNA A-labels, no final dot), or the address.
        port: As given, or the scheme's.
        path: Path and query as they are sent, percent-encoded, starting with "/".
        address: The host as an address, where it is one.
    """

    scheme: Scheme
    host: str
    port: int
    path: str
    address: Address | None = None

    @property
    def authority(self) -> str:
        """Host and, unless it is the scheme's, port: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == default_port(self.scheme) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole address, normalised, without fragment."""
        return f"{self.scheme}://{self.authority}{self.path}"


def default_port(scheme: str) -> int:
    """80 or 443."""
    return 443 if scheme == "https" else 80


_USER_INFO: Final = re.compile(r"//[^/?#]*@")
"""What stands before the @ may be a password, and an error's text goes to models and checkpoints."""


def refused(message: str, hint: str = "", *, url: str = "") -> ToolError:
    """The error for an address that is not connected to."""
    shown = f"{_USER_INFO.sub('//', url)[:200]!r}: " if url else ""
    return ToolError(f"{shown}{message}", code="refused_url", hint=hint)


def read_url(url: str) -> Target:
    """A URL as a target. Raises `ToolError` (`refused_url`) for what is malformed or ambiguous."""
    if len(url) > WEB_URL_MAX_CHARS:
        raise refused(f"the URL has {len(url)} characters; {WEB_URL_MAX_CHARS} are taken", url=url)
    if (bad := _FORBIDDEN.search(url)) is not None:
        raise refused(f"the URL holds the character {bad[0]!r}", "Percent-encode it, or leave it out.", url=url)
    shape = _SHAPE.fullmatch(url)
    if shape is None:
        raise refused("not an http or https URL", "Give an absolute URL: https://host/path.", url=url)
    scheme: Scheme = "https" if shape[1].lower() == "https" else "http"
    host, port, address = _authority(shape[2], scheme, url)
    return Target(scheme, host, port, _path(shape[3]), address)


def read_redirect(base: Target, location: str) -> Target:
    """Where a Location header leads, read as strictly. Raises `ToolError` (`refused_url`).

    Spaces in it are percent-encoded, as browsers do; what browsers and RFC 3986 readers take to different
    hosts (a slash and a backslash, three slashes, `http:host`) is refused.
    """
    location = location.strip(" \t").replace(" ", "%20")
    if location.startswith("///"):
        raise refused("a redirect starts with three slashes, which browsers take for a host", url=location)
    if _SCHEME.match(location) or location.startswith("//"):
        absolute = location if not location.startswith("//") else f"{base.scheme}:{location}"
        target = read_url(absolute)
    else:
        if "\\" in location:
            raise refused("a redirect holds a backslash, which browsers take for a slash", url=location)
        target = read_url(urljoin(base.url, location))
    if base.scheme == "https" and target.scheme == "http":
        raise refused(f"a redirect from https to http ({target.url[:200]}) is not followed: it drops the protection")
    return target


def is_private_name(host: str) -> bool:
    """Whether a name belongs to a local network: a single label, or a suffix that public DNS does not hold."""
    return "." not in host or any(host == suffix or host.endswith("." + suffix) for suffix in _PRIVATE_SUFFIXES)


def is_blocked_port(port: int) -> bool:
    """Whether a port belongs to a service that a web page must not reach."""
    return port in _BLOCKED_PORTS


def read_host(host: str) -> tuple[str, Address | None]:
    """A host name or address as it is resolved or connected to. Raises `ToolError` (`refused_url`)."""
    if not host.isascii():
        host = _to_ascii(host)
    name = host.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        address = parse(name)
        if address is None:
            raise refused(f"{name[:100]!r} is an unusual spelling of an IPv4 address", "Write four decimal numbers.")
        return name, address
    if len(name) > _NAME_MAX_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise refused(f"{name[:100]!r} is not a valid host name")
    return name, None


def _authority(text: str, scheme: Scheme, url: str) -> tuple[str, int, Address | None]:
    if "@" in text:
        raise refused("the URL carries a user name or password", "Leave out what stands before the @.", url=url)
    bracketed = _BRACKETED.fullmatch(text)
    named = None if bracketed else _NAMED.fullmatch(text)
    found = bracketed or named
    if found is None or not found[1]:
        raise refused("the URL has no valid host", "Give an absolute URL: https://host/path.", url=url)
    port = _port(found[2], scheme, url)
    if bracketed:
        address = parse(bracketed[1])
        if address is None or address.version != 6:
            raise refused("what stands in brackets is not an IPv6 address", url=url)
        return address.compressed, port, address
    host, literal = read_host(found[1])
    return host, port, literal


def _port(text: str | None, scheme: Scheme, url: str) -> int:
    if not text:
        return default_port(scheme)
    port = int(text) if len(text) <= 5 else 65_536
    if not 0 < port < 65_536:
        raise refused(f"port {text[:20]} does not exist", url=url)
    return port


def _path(text: str) -> str:
    quoted = quote(text, safe="!$%&'()*+,/:;=?@[]~")
    return quoted if quoted.startswith("/") else "/" + quoted


def _to_ascii(host: str) -> str:
    try:
        return idna.encode(host.lower(), strict=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as e:
        raise refused(f"{host[:100]!r} is not a valid international host name ({e})") from None
