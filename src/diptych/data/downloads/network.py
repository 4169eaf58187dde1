"""Connections that lead only where they may: a name is looked up once, checked, and that very number is called."""

from __future__ import annotations

import socket
from collections.abc import Iterable

import httpcore

from diptych.data.downloads.addresses import is_public
from diptych.data.downloads.trouble import Trouble


class CheckedNetwork(httpcore.SyncBackend):
    """The ordinary network without private and loopback addresses.

    A name in a file of somebody else may lead to a machine behind the firewall, and may do so only at its second
    look-up; so what was checked is what is connected to.
    """

    def __init__(self, allow_private: bool = False) -> None:
        super().__init__()
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of ``host`` that answers."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from None
        numbers = list(dict.fromkeys(str(one[4][0]) for one in found))
        for number in numbers if not self._allow_private else ():
            if not is_public(number):
                raise Trouble("private", f"{host} leads to {number}, which is not on the public internet")
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for number in numbers[:4]:
            try:
                return super().connect_tcp(number, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed
