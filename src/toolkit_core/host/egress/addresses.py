"""Which addresses may be connected to: pure rules, no I/O.

`ipaddress.is_global` is not enough: it allows multicast, 168.63.129.16, IPv4-compatible and IPv4-translated
forms, NAT64 of private addresses and more, and its answers differ between Python versions.

Sources: the IANA special-purpose registries for IPv4 and IPv6 (RFC 6890 and what updates it), RFC 5771 and
RFC 1112 (multicast, class E), RFC 4291 (mapped and compatible addresses), RFC 6052 (NAT64), RFC 3056 (6to4).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_IPV4_DENIED: Final = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this host"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's shared network"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, where clouds serve credentials"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.31.196.0/24", "reserved for AS112"),
        ("192.52.193.0/24", "reserved for AMT"),
        ("192.88.99.0/24", "the former 6to4 relays"),
        ("192.168.0.0/16", "a private network"),
        ("192.175.48.0/24", "reserved for AS112"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
        ("168.63.129.16/32", "the host agent of Azure"),
    )
)

_IPV6_ALLOWED: Final = IPv6Network("2000::/3")
_IPV6_DENIED: Final = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "reserved for documentation"),
        ("2002::/16", "6to4, which embeds an IPv4 address"),
        ("2620:4f:8000::/48", "reserved for AS112"),
        ("3fff::/20", "reserved for documentation"),
    )
)
_IPV6_NAMED: Final = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::1/128", "loopback"),
        ("::/128", "this host"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    )
)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def parse(text: str) -> Address | None:
    """An address in its standard spelling (no zone, no short or octal form), else None."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def embedded_ipv4(address: Address) -> IPv4Address | None:
    """The IPv4 address that the kernel or a NAT64 gateway would reach instead, where there is one."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def refusal(address: Address) -> str | None:
    """Why an address is not part of the public internet; None where it is.

    Example:
        >>> refusal(IPv6Address("64:ff9b::7f00:1"))
        'loopback'
    """
    address = embedded_ipv4(address) or address
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _IPV4_DENIED if address in network), None)
    if address not in _IPV6_ALLOWED:
        return next((reason for network, reason in _IPV6_NAMED if address in network), "not a global IPv6 address")
    return next((reason for network, reason in _IPV6_DENIED if address in network), None)


def inside(address: Address, networks: tuple[Network, ...]) -> bool:
    """Whether an address, or the IPv4 address it stands for, lies in one of the networks."""
    forms = (address, embedded_ipv4(address))
    return any(
        form is not None and form.version == network.version and form in network
        for form in forms
        for network in networks
    )
