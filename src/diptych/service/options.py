"""Options of the service."""

from ipaddress import ip_address
from pathlib import Path

from diptych.core.options import Options, parameter


class ServeOptions(Options):
    """Options of ``diptych serve``: where it listens, who may ask, and how much."""

    encoder: str | None = parameter(
        None, "The query encoder of all indexes.", metavar="MODEL", default="the one each was built with"
    )
    host: str = parameter("127.0.0.1", "Address to listen at; beyond this machine a token is needed.")
    port: int = parameter(8000, "Port; 0: any that is free.", ge=0, le=65_535)
    token: str | None = parameter(
        None,
        "What clients send as Authorization: Bearer TOKEN.",
        envvar="DIPTYCH_TOKEN",
        default="none, or a new one",
    )
    no_auth: bool = parameter(False, "Let everybody in who reaches the address.", "--no-auth")
    writable: bool = parameter(False, "Let clients add and delete items.", "--writable")
    scorer: Path | None = parameter(None, "What diptych intent train wrote, for /v1/intent/score.")
    cache: int = parameter(1024, "Answers that are kept; 0: none.", ge=0)
    wait: float = parameter(5.0, "Milliseconds that a query waits for others, at most.", ge=0, le=1000)
    queue: int = parameter(1024, "Items that may wait; more are refused (429).", ge=1)
    timeout: float = parameter(30.0, "Seconds for one request (503).", gt=0)
    max_body: float = parameter(32.0, "Megabytes of a request (413).", gt=0)
    max_pixels: float = parameter(50.0, "Millions of pixels of an image (422).", gt=0)
    max_items: int = parameter(256, "Texts and images of one request (413).", ge=1)
    log: bool = parameter(True, "Write a line of JSON for each request to standard error.")

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False
