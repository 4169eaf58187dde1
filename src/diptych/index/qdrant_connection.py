"""One collection of a Qdrant server, or of its stand-in inside this process, and conditions on metadata."""

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.data.records import Record, Where, check_where
from diptych.index.engine import OptionValue

OWN = "diptych"  # the payload's field of this package; next to it are the fields of the item's metadata


def models() -> Any:
    return require("qdrant_client.models", purpose="a Qdrant index")


class Connection:
    """A collection and how to reach it; errors of the client come out as this package's.

    Certificates of an https server are checked; ``SSL_CERT_FILE`` names those of an authority of one's
    own. Nothing is sent before the first request.

    Attributes:
        remote: whether a server holds the items.
        place: words for where the collection is.
    """

    def __init__(self, options: Mapping[str, OptionValue]) -> None:
        client = require("qdrant_client", purpose="a Qdrant index")
        self.url, self.collection = str(options["url"]), str(options["collection"])
        self._variable, self._timeout = str(options["key_variable"]), int(options["timeout"])
        self.remote = bool(self.url)
        where = f"at {self.url}" if self.remote else "in this process"
        self.place: str = f"Qdrant collection {self.collection!r} {where}"
        if not self.remote:
            self._client = client.QdrantClient(":memory:")
            return
        local = _check_address(self.url)
        key = _key(self._variable)
        self._has_key = key is not None
        with warnings.catch_warnings():
            if local:  # the client warns of keys over http, which between programs of one machine is well
                warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
            self._client = client.QdrantClient(
                url=self.url,
                port=None if urlsplit(self.url).port else 6333,
                api_key=key,
                timeout=self._timeout,
                check_compatibility=False,  # it would ask the server from a thread of its own
            )

    def ask(self, method: str, **arguments: Any) -> Any:
        exceptions = require("qdrant_client.http.exceptions", purpose="a Qdrant index")
        common = require("qdrant_client.common.client_exceptions", purpose="a Qdrant index")
        try:
            return getattr(self._client, method)(collection_name=self.collection, **arguments)
        except exceptions.UnexpectedResponse as error:
            problem, fix = self._refused(int(error.status_code or 0), error.reason_phrase, error.content)
        except common.ResourceExhaustedResponse as error:
            problem = f"the Qdrant server at {self.url} is too busy: {error}"
            fix = "run the same again later: it resumes"
        except exceptions.ResponseHandlingException as error:
            cause, kept = error.source, "what was uploaded is kept, the same call resumes"
            if isinstance(cause, require("httpx", "qdrant", "a Qdrant index").TimeoutException):
                problem = f"the Qdrant server at {self.url} did not answer within {self._timeout} s"
                fix = f"pass a longer timeout or a smaller batch; {kept}"
            else:
                problem = f"no Qdrant server answers at {self.url}: {str(cause) or type(cause).__name__}"
                fix = f"start the server or correct the url; {kept}"
        raise StorageError(problem, fix)

    def _refused(self, status: int, reason: str, content: bytes) -> tuple[str, str]:
        """Return what a server's answer means, and what to do."""
        try:
            answer = json.loads(content)["status"]["error"]
        except (ValueError, KeyError, TypeError):
            answer = content.decode("utf-8", "replace")
        answer = " ".join(str(answer).split())[:200] or reason
        if status in (401, 403):
            have = "is set" if self._has_key else "is not set"
            return (
                f"the Qdrant server at {self.url} refuses the key ({status}: {answer}); the environment variable "
                f"{self._variable or '(none named)'} {have}",
                f"let key_variable name one with a key that may use the collection {self.collection!r}",
            )
        if status == 404:
            return (
                f"there is no {self.place} (404: {answer})",
                "it was deleted, or the index was built on another server: build it again, or correct the url",
            )
        return (
            f"the Qdrant server at {self.url} answered {status}: {answer}",
            "what was uploaded is kept; when the cause is gone, the same call resumes",
        )


def _key(variable: str) -> str | None:
    """Return the key that the variable holds, if any; it stands in no message.

    Options come with a saved index, which may be untrusted: no other secret of the environment is sent to the
    server that it names.
    """
    if variable and not variable.startswith("QDRANT_"):
        raise UsageError(
            f"key_variable={variable!r}: only variables named QDRANT_… are sent to a server as a key",
            "put the key into such a variable",
        )
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"the environment variable {variable} holds characters that no key can have",
            "set it to the key and nothing else",
        )
    return key or None


def _check_address(url: str) -> bool:
    parts = urlsplit(url)
    try:
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number
        good = False
    if not good:
        shown = "the url given" if "@" in url else repr(url)  # before an @ a password may stand
        raise UsageError(f"{shown} is not the address of a server", "url=https://host:6333")
    if parts.username or parts.password or parts.query or parts.fragment:
        # Not shown: it may be a key, and options are printed and saved.
        raise UsageError(
            f"the url of the server at {parts.hostname} holds more than an address",
            "keys and passwords would be saved with the index: put the key into an environment variable",
        )
    return parts.hostname in ("localhost", "127.0.0.1", "::1")


def filter_of(where: Where) -> Any:
    """Return the filter that lets through items for which every condition holds.

    A field that holds a list fulfils a condition when one of its entries does; ``"attributes.colour"``
    names a field inside a field. An item without the field does not fulfil it.
    """
    check_where(where)
    return models().Filter(must=[_condition(field, value) for field, value in where.items()])


def _condition(field: str, value: Any) -> Any:
    m = models()
    if isinstance(value, Mapping):
        return m.FieldCondition(key=field, range=m.Range(**value))
    if isinstance(value, list | tuple | set | frozenset):
        if {type(one) for one in value} in ({str}, {int}):
            return m.FieldCondition(key=field, match=m.MatchAny(any=list(value)))
        return m.Filter(should=[_condition(field, one) for one in value])
    if isinstance(value, float):  # Qdrant matches no floats, but compares them
        return m.FieldCondition(key=field, range=m.Range(gte=value, lte=value))
    return m.FieldCondition(key=field, match=m.MatchValue(value=value))


def field_types(records: Iterable[Record]) -> dict[str, str]:
    """Return the Qdrant type of every top-level field of the metadata whose values are all of one type.

    A server searches filtered quickly only by fields that it indexes, and it wants their types.
    """
    named = {bool: "bool", str: "keyword", int: "integer", float: "float"}
    kinds: dict[str, set[str]] = {}
    for record in records:
        for field, value in record.items():
            values = value if isinstance(value, list) else [value]
            types = {named.get(type(entry), "") for entry in values if entry is not None}
            kinds.setdefault(field, set()).update(types)
    kinds |= {field: {"float"} for field, found in kinds.items() if found == {"integer", "float"}}
    return {field: next(iter(found)) for field, found in kinds.items() if len(found) == 1 and "" not in found}
