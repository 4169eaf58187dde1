"""One collection of a Qdrant server, or of its stand-in inside this process, and conditions on metadata."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.index.engine import Option, OptionValue

CONNECTION_OPTIONS = (
    Option("url", "", "the server, e.g. https://host:6333 (https: TLS); empty: in this process"),
    Option("collection", "diptych", "the collection's name on the server"),
    Option("key_variable", "QDRANT_API_KEY", "environment variable with the API key, QDRANT_…"),
    Option("timeout", 60, "seconds the server may take to answer", 1),
    Option("batch", 256, "items or queries in one request", 1),
    Option("shards", 1, "parts the collection is split into", 1),
    Option("replicas", 1, "servers of the cluster that hold each part", 1),
    Option("replace", False, "delete a collection of that name first"),
)
"""What both Qdrant engines are told of the server. The key itself is no option: options are saved."""


def models() -> Any:
    """The client's request models."""
    return require("qdrant_client.models", "qdrant", "a Qdrant index")


class Connection:
    """A collection and how to reach it; errors of the client come out as this package's.

    Certificates of an https server are checked; ``SSL_CERT_FILE`` names those of an authority of one's
    own. Nothing is sent before the first request.
    """

    def __init__(self, options: Mapping[str, OptionValue]) -> None:
        client = require("qdrant_client", "qdrant", "a Qdrant index")
        self.url, self.collection = str(options["url"]), str(options["collection"])
        self._variable, self._timeout = str(options["key_variable"]), int(options["timeout"])
        if not self.url:
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

    @property
    def remote(self) -> bool:
        """Whether a server holds the items."""
        return bool(self.url)

    @property
    def place(self) -> str:
        """Words for where the collection is."""
        return f"Qdrant collection {self.collection!r} " + (
            f"at {self.url}" if self.url else "in this process"
        )

    def ask(self, method: str, **arguments: Any) -> Any:
        """Call the client's ``method`` on this collection."""
        exceptions = require("qdrant_client.http.exceptions", "qdrant", "a Qdrant index")
        common = require("qdrant_client.common.client_exceptions", "qdrant", "a Qdrant index")
        try:
            return getattr(self._client, method)(collection_name=self.collection, **arguments)
        except exceptions.UnexpectedResponse as error:
            raise self._refused(int(error.status_code or 0), error.reason_phrase, error.content) from None
        except common.ResourceExhaustedResponse as error:
            raise StorageError(
                f"the Qdrant server at {self.url} is too busy: {error}",
                "run the same again later: it resumes",
            ) from None
        except exceptions.ResponseHandlingException as error:
            raise self._unanswered(error.source) from None

    def _unanswered(self, cause: Exception) -> StorageError:
        if isinstance(cause, require("httpx", "qdrant", "a Qdrant index").TimeoutException):
            return StorageError(
                f"the Qdrant server at {self.url} did not answer within {self._timeout} s",
                "pass a longer timeout or a smaller batch; what was uploaded is kept, the same call resumes",
            )
        return StorageError(
            f"no Qdrant server answers at {self.url}: {str(cause) or type(cause).__name__}",
            "start the server or correct the url; what was uploaded is kept, the same call resumes",
        )

    def _refused(self, status: int, reason: str, content: bytes) -> StorageError:
        said = _words(content) or reason
        if status in (401, 403):
            have = "is set" if self._has_key else "is not set"
            return StorageError(
                f"the Qdrant server at {self.url} refuses the key ({status}: {said}); the environment "
                f"variable {self._variable or '(none named)'} {have}",
                f"set it to a key that may use the collection {self.collection!r}"
                if self._variable
                else "name a variable that holds the key with key_variable",
            )
        if status == 404:
            return StorageError(
                f"the server at {self.url} has no collection {self.collection!r} (404: {said})",
                "build the index again, or correct url and collection",
            )
        return StorageError(
            f"the Qdrant server at {self.url} answered {status}: {said}",
            "what was uploaded is kept; when the cause is gone, the same call resumes",
        )


def _key(variable: str) -> str | None:
    """The key that the variable holds, if any; it stands in no message.

    Options come with a saved index, and it may be a stranger's: no other secret of the environment is sent to the
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
    """Whether ``url`` is this machine."""
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


def _words(content: bytes) -> str:
    """What the server said of an error, at most one line."""
    try:
        said = json.loads(content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        said = content.decode("utf-8", "replace")
    return " ".join(str(said).split())[:200]


Where = Mapping[str, Any]
"""Per field a value, a list of values any of which will do, or a range ``{"gte": 10, "lt": 20}``."""

_BOUNDS = ("gt", "gte", "lt", "lte")
_EXAMPLE = 'where={"category": "shoes", "colour": ["red", "blue"], "price": {"gte": 10, "lt": 20}}'


def filter_of(where: Where) -> Any:
    """The filter that lets through items for which every condition holds.

    A field that holds a list fulfils a condition when one of its entries does; ``"attributes.colour"``
    names a field inside a field. An item without the field does not fulfil it.
    """
    if not isinstance(where, Mapping) or not where:
        raise UsageError(f"where={where!r} holds no condition", _EXAMPLE)
    return models().Filter(must=[_condition(field, wanted) for field, wanted in where.items()])


def _condition(field: str, wanted: Any) -> Any:
    m = models()
    if not isinstance(field, str) or not field:
        raise UsageError(f"{field!r} is not the name of a field of the metadata", _EXAMPLE)
    if isinstance(wanted, Mapping):
        return m.FieldCondition(key=field, range=m.Range(**_bounds(field, wanted)))
    if isinstance(wanted, list | tuple | set | frozenset):
        return _any_of(field, list(wanted))
    return _equal(field, wanted)


def _equal(field: str, wanted: Any) -> Any:
    m = models()
    if isinstance(wanted, float) and math.isfinite(wanted):  # Qdrant matches no floats, but compares them
        return m.FieldCondition(key=field, range=m.Range(gte=wanted, lte=wanted))
    if isinstance(wanted, str | bool | int):
        return m.FieldCondition(key=field, match=m.MatchValue(value=wanted))
    raise UsageError(f"where: {field}={wanted!r} can be no item's value", _EXAMPLE)


def _any_of(field: str, wanted: list[Any]) -> Any:
    m = models()
    kinds = {type(value) for value in wanted}
    if not wanted:
        raise UsageError(f"where: {field}=[] lets nothing through", "leave the field out, or name values")
    if kinds in ({str}, {int}):
        return m.FieldCondition(key=field, match=m.MatchAny(any=wanted))
    return m.Filter(should=[_equal(field, value) for value in wanted])


def _bounds(field: str, wanted: Mapping[str, Any]) -> dict[str, float]:
    for name, bound in wanted.items():
        number = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
        if name not in _BOUNDS or not number:
            raise UsageError(
                f"where: {field}={{{name!r}: {bound!r}}} is no bound of a range",
                f"bounds are numbers under {', '.join(_BOUNDS)}",
            )
    if not wanted:
        raise UsageError(f"where: the range of {field} has no bounds", f"give one of {', '.join(_BOUNDS)}")
    return dict(wanted)


def field_types(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The Qdrant type of every top-level field of the metadata whose values are all of one type.

    A server searches filtered quickly only by fields that it indexes, and it wants their types.
    """
    kinds: dict[str, set[str]] = {}
    for record in records:
        for field, value in record.items():
            values = value if isinstance(value, list) else [value]
            kinds.setdefault(field, set()).update(_type_of(entry) for entry in values if entry is not None)
    numbers = {"integer", "float"}
    named = {field: {"float"} if kind == numbers else kind for field, kind in kinds.items()}
    return {field: next(iter(kind)) for field, kind in named.items() if len(kind) == 1 and "" not in kind}


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "keyword", int: "integer", float: "float"}.get(type(value), "")
