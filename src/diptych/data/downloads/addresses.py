"""Addresses out of somebody else's file: which may be followed, and where they lead."""

from __future__ import annotations

import ipaddress
from urllib.parse import quote, urlsplit, urlunsplit

from diptych.data.downloads.trouble import Trouble

_KEPT = "/%:=&?~+!$,;'@()*[]|"
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses as networks of IPv6 alone write them (RFC 6052)."""


def proper_address(address: str) -> str:
    """An address as it is asked for: http or https, a host, in ASCII, without a fragment."""
    shown = address if len(address) <= 200 else address[:200] + "…"
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname, parts.port
        if parts.scheme.lower() not in ("http", "https") or not host:
            raise Trouble("address", f"{shown!r} is no http or https address")
        if parts.username is not None or parts.password is not None:
            raise Trouble("address", f"the address on {host} holds a user name")
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        path, query = quote(parts.path, safe=_KEPT) or "/", quote(parts.query, safe=_KEPT)
    except ValueError as error:  # UnicodeError is one
        raise Trouble("address", f"{shown!r} is no address: {error}") from None
    place = name if port is None else f"{name}:{port}"
    return urlunsplit((parts.scheme.lower(), place, path, query, ""))


def origin_of(address: str) -> str:
    """Scheme, host and port: what a robots.txt is for."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(address: str) -> str:
    """The host and port that a turn is waited for."""
    return urlsplit(address).netloc


def is_public(number: str) -> bool:
    """Whether an IP address is one of the public internet: not private, loopback, link-local or multicast."""
    address = ipaddress.ip_address(number.split("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
        elif address.is_reserved or address.is_site_local:  # ::127.0.0.1 is of the reserved ones
            return False
    return address.is_global and not address.is_multicast
