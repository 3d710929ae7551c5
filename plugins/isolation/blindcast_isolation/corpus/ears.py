"""Listeners that count what reaches them: nobody honest ever connects (A-22)."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from contextlib import suppress
from typing import Final

__all__ = ["Ears"]

_READ: Final = 4_096


class Ears:
    """Loopback listeners for TCP, TCP over v6, UDP, an abstract and a path unix socket, on one thread."""

    def __init__(self, abstract: str, path: str) -> None:
        self.abstract = abstract
        self.heard: list[tuple[str, bytes]] = []
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self.ports: dict[str, int] = {}
        for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            with suppress(OSError):  # a host without v6
                self._listen(name, family, ("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self._listen("abstract", socket.AF_UNIX, f"\0{abstract}")
        self._listen("unix", socket.AF_UNIX, path)
        os.chmod(path, 0o666)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        self._add("udp", udp)
        self._wake, wake = socket.socketpair()
        self._selector.register(wake, selectors.EVENT_READ, ("wake", wake))
        self._sockets.append(wake)
        threading.Thread(target=self._hear, daemon=True, name="ears").start()

    def _listen(self, name: str, family: socket.AddressFamily, address: object) -> None:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)  # type: ignore[arg-type]  # typeshed knows tuples and text; both come here
        listener.listen(64)
        self._add(name, listener)

    def _add(self, name: str, listener: socket.socket) -> None:
        self._sockets.append(listener)
        if listener.family != socket.AF_UNIX:
            self.ports[name] = listener.getsockname()[1]
        self._selector.register(listener, selectors.EVENT_READ, (name, listener))

    def _hear(self) -> None:
        while True:
            for key, _ in self._selector.select():
                name, listener = key.data
                if name == "wake":
                    return
                with suppress(OSError):
                    self.heard.append((name, listener.recv(_READ) if name == "udp" else _first_words(listener)))

    def taken(self) -> list[tuple[str, bytes]]:
        """(listener, first bytes) of each connection and datagram since the last time."""
        taken, self.heard = self.heard, []
        return taken

    def close(self) -> None:
        """Hear no more."""
        self._wake.close()


def _first_words(listener: socket.socket) -> bytes:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(0.05)
        with suppress(OSError):
            return connection.recv(_READ)
    return b""
