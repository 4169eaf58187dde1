"""How politely, and how far, pictures are fetched."""

from __future__ import annotations

from dataclasses import dataclass, fields

from diptych.core.errors import UsageError
from diptych.core.version import __version__
from diptych.data.images import MAX_PIXELS

AGENT = "diptych"
"""The name under which robots.txt is read."""


@dataclass(frozen=True)
class DownloadOptions:
    """Options of one download.

    Attributes:
        contact: a mail address or web page where whoever runs a host can reach who downloads; it is sent to all.
        rate: requests per second and host, robots.txt included.
        connections: at once, to one host.
        hosts: how many hosts at once.
        robots: keep to robots.txt.
        allow_private: follow addresses into private and loopback networks.
        attempts: how often a picture is tried before it counts as failed.
        back_off: seconds before the second attempt; twice as long before each further one.
        longest_wait: seconds; a host that asks for a longer pause is left for another time.
        timeout: seconds to connect, and without a byte.
        seconds: for one picture altogether.
        redirects: how many are followed.
        max_bytes: a picture's largest file.
        max_pixels: a picture's largest area.
        min_side: shorter pictures are placeholders.
    """

    contact: str
    rate: float = 1.0
    connections: int = 1
    hosts: int = 8
    robots: bool = True
    allow_private: bool = False
    attempts: int = 4
    back_off: float = 2.0
    longest_wait: float = 600.0
    timeout: float = 30.0
    seconds: float = 180.0
    redirects: int = 5
    max_bytes: int = 30_000_000
    max_pixels: int = MAX_PIXELS
    min_side: int = 2

    def __post_init__(self) -> None:
        contact = self.contact.strip()
        if not contact or not contact.isascii() or not contact.isprintable() or set("()") & set(contact):
            raise UsageError(
                f"{self.contact!r} is no contact",
                "give a mail address or a web page, so that whoever runs a host can reach you",
            )
        for field in fields(self):
            value = getattr(self, field.name)
            zero = field.name in ("back_off", "redirects", "min_side")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and not (value > 0 or (zero and value == 0)):
                raise UsageError(f"{field.name} cannot be {value:g}", "give a positive number")

    @property
    def user_agent(self) -> str:
        """What is sent to hosts."""
        return f"{AGENT}/{__version__} (+{self.contact.strip()})"
