"""The egress policy: which addresses the tools of a set may reach, judged where the connection is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from toolkit_core.errors import ToolError
from toolkit_core.host.egress.addresses import Address, Network, inside, parse, refusal
from toolkit_core.host.egress.resolver import Resolver, SystemResolver
from toolkit_core.host.egress.urls import (
    Target,
    is_blocked_port,
    is_private_name,
    read_host,
    read_redirect,
    read_url,
    refused,
)
from toolkit_core.limits import WEB_ADDRESSES_TRIED, WEB_CONNECT_STAGGER_SECONDS, WEB_READ_BYTES

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, int], Awaitable[Connection]]
"""Connects to an address that was approved: `await dial("93.184.216.34", 443) -> (reader, writer)`."""


async def dial_directly(address: str, port: int) -> Connection:
    """Connect to an address (never a name: nothing is resolved) and check that it is the one reached."""
    reader, writer = await asyncio.open_connection(address, port, limit=WEB_READ_BYTES)
    peer = parse(str(writer.get_extra_info("peername", ("",))[0]))
    if peer is None or peer != parse(address):
        writer.transport.abort()
        raise refused(f"the connection to {address} arrived elsewhere ({peer})")
    return reader, writer


@dataclass(frozen=True)
class _Names:
    """Domain entries: `example.com` means it and what is below it, `*.example.com` only what is below."""

    entries: tuple[str, ...]

    @staticmethod
    def of(entries: Iterable[str]) -> _Names:
        read: list[str] = []
        for entry in entries:
            below = entry.startswith("*.")
            try:
                read.append(("*." if below else "") + read_host(entry[2:] if below else entry.strip("[]"))[0])
            except ToolError as e:
                raise ValueError(f"not a host name: {entry!r} ({e.message})") from None
        return _Names(tuple(read))

    def __contains__(self, host: str) -> bool:
        return any(
            host.endswith(entry[1:]) if entry.startswith("*.") else host == entry or host.endswith("." + entry)
            for entry in self.entries
        )


class Egress:
    """One policy for web_fetch, browse and the search providers of a set. Immutable; it holds no connection.

    Args:
        allow_domains: If given, no other host is reached. `example.com` means it and its subdomains,
            `*.example.com` only these.
        block_domains: Never reached; wins over `allow_domains`.
        allow_private: Hosts, addresses and networks (CIDR) that are reached although they are not public.
        resolver: `await resolver(host) -> addresses as text`; raises OSError where a name does not resolve.
            Asked once a connection; every answer is judged, one bad answer refuses the name.
        dial: `await dial(address, port) -> (StreamReader, StreamWriter)`: connects to an address that was
            approved. The seam for a tunnel, or for a test's local server.

    Raises:
        ValueError: An entry is neither a host nor a network.

    Example:
        >>> Egress(allow_domains=["docs.python.org"]).screen("https://docs.python.org/3/").host
        'docs.python.org'
    """

    def __init__(
        self,
        *,
        allow_domains: Sequence[str] = (),
        block_domains: Sequence[str] = (),
        allow_private: Sequence[str] = (),
        resolver: Resolver | None = None,
        dial: Dial | None = None,
    ) -> None:
        for option, value in (
            ("allow_domains", allow_domains),
            ("block_domains", block_domains),
            ("allow_private", allow_private),
        ):
            if isinstance(value, str):
                raise ValueError(f"{option} takes a list of hosts, not one string")
        networks, hosts = _private_entries(allow_private)
        self._allowed = _Names.of(allow_domains)
        self._blocked = _Names.of(block_domains)
        self._private_networks = networks
        self._private_names = _Names.of(hosts)
        self._resolve = resolver or SystemResolver()
        self._dial = dial or dial_directly

    def with_private(self, host: str) -> Egress:
        """The same policy, which also reaches one host that its program named itself (a search service, say)."""
        other = Egress(resolver=self._resolve, dial=self._dial)
        other._blocked = self._blocked
        other._allowed = _Names((*self._allowed.entries, host)) if self._allowed.entries else self._allowed
        networks, hosts = _private_entries([host])
        other._private_networks = (*self._private_networks, *networks)
        other._private_names = _Names((*self._private_names.entries, *hosts))
        return other

    def screen(self, url: str) -> Target:
        """Judge a URL before anything is looked up. Raises `ToolError` (`refused_url`)."""
        return self._judge(read_url(url))

    def screen_redirect(self, base: Target, location: str) -> Target:
        """Judge where a redirect leads. Raises `ToolError` (`refused_url`)."""
        return self._judge(read_redirect(base, location))

    def screen_host(self, host: str, port: int) -> tuple[str, Address | None]:
        """Judge a host and a port without a URL (a proxy's CONNECT). Raises `ToolError` (`refused_url`)."""
        address = parse(host)
        name = address.compressed if address is not None else ""
        if address is None:
            name, address = read_host(host)
        self._judge_host(name, port, address)
        return name, address

    async def connect(self, host: str, port: int) -> Connection:
        """Resolve a screened host once, judge every answer, and connect to one of those very addresses.

        Raises:
            ToolError: `refused_url` (an answer is not public, no answer), `network_error` (no look-up, nobody
                answers).
        """
        name, literal = self.screen_host(host, port)
        addresses = [literal] if literal is not None else await self._approved(name)
        if literal is not None:
            self._judge_address(name, literal)
        return await _first(self._dial, [address.compressed for address in addresses[:WEB_ADDRESSES_TRIED]], name, port)

    async def _approved(self, name: str) -> list[Address]:
        try:
            found = self._resolve(name)
            answers = list(await found if isinstance(found, Awaitable) else found)
        except (OSError, UnicodeError) as e:
            reason = getattr(e, "strerror", None) or str(e)
            raise ToolError(
                f"the name {name} does not resolve ({reason})",
                code="network_error",
                hint="Check the spelling of the host.",
            ) from e
        if not answers:
            raise refused(f"the name {name} resolves to no address", "Check the spelling of the host.")
        approved: list[Address] = []
        for answer in answers:
            address = parse(str(answer))
            if address is None:
                raise refused(f"{name} resolves to {answer!r}, which is not a plain address")
            self._judge_address(name, address)
            approved.append(address)
        return list(dict.fromkeys(approved))

    def _judge(self, target: Target) -> Target:
        self._judge_host(target.host, target.port, target.address)
        if target.address is not None:
            self._judge_address(target.host, target.address)
        return target

    def _judge_host(self, host: str, port: int, address: Address | None) -> None:
        if is_blocked_port(port):
            raise refused(f"port {port} of {host} is not a web server's")
        if host in self._blocked:
            raise refused(f"{host} is blocked by this program's settings")
        if self._allowed.entries and host not in self._allowed:
            raise refused(f"{host} is not among the hosts that this program allows: {', '.join(self._allowed.entries)}")
        if address is None and is_private_name(host) and host not in self._private_names:
            raise refused(f"{host} is a name of a local network", "Only public hosts are reached.")

    def _judge_address(self, host: str, address: Address) -> None:
        reason = refusal(address)
        if reason is None or host in self._private_names or inside(address, self._private_networks):
            return
        shown = f"{host} is" if parse(host) is not None else f"{host} resolves to {address.compressed}, which is"
        raise refused(f"{shown} not a public address ({reason})", "Only public hosts are reached.")


def _private_entries(entries: Iterable[str]) -> tuple[tuple[Network, ...], list[str]]:
    networks: list[Network] = []
    hosts: list[str] = []
    for entry in entries:
        try:
            networks.append(ip_network(entry.strip("[]"), strict=False))
        except ValueError:
            hosts.append(entry)
    return tuple(networks), hosts


async def _first(dial: Dial, addresses: Sequence[str], host: str, port: int) -> Connection:
    """The first connection that stands; another address is tried beside one that lets wait (RFC 8305)."""
    waiting = list(addresses)
    running: set[asyncio.Task[Connection]] = set()
    failures: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(_as_coroutine(dial(waiting.pop(0), port))))
            pause = WEB_CONNECT_STAGGER_SECONDS if waiting else None
            done, running = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    running |= done - {task}
                    return task.result()
                failures.append(error)
    finally:
        await _drop(running)
    raise _no_connection(failures, host, port)


async def _drop(tasks: set[asyncio.Task[Connection]]) -> None:
    for task in tasks:
        task.cancel()
        task.add_done_callback(_close_late)
    if tasks:
        await asyncio.wait(tasks)


def _close_late(task: asyncio.Task[Connection]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[1].transport.abort()


async def _as_coroutine(connection: Awaitable[Connection]) -> Connection:
    return await connection


def _no_connection(failures: Sequence[BaseException], host: str, port: int) -> BaseException:
    first = failures[0]
    if not isinstance(first, OSError):
        return first
    reason = first.strerror or str(first) or type(first).__name__
    error = ToolError(
        f"no connection to {host} port {port}: {reason}",
        code="network_error",
        hint="The server may be down; try again later or another address.",
        retryable=True,
    )
    error.__cause__ = first
    return error
