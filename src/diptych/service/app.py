"""The HTTP API over indexes; :func:`create_app` gives the ASGI application that ``diptych serve`` runs."""

import asyncio
import base64
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError
from scipy.sparse import issparse
from starlette.exceptions import HTTPException

from diptych.core.errors import DataError, DiptychError, UnknownNameError, UsageError
from diptych.core.files import write_bytes
from diptych.core.fingerprint import fingerprint_stream
from diptych.core.version import __version__
from diptych.service import schemas
from diptych.service.guard import Counters, Guard
from diptych.service.images import WIDTHS, Thumbnails, decoded, image_bytes
from diptych.service.options import ServeOptions
from diptych.service.problems import PROBLEMS, ProblemError, invalid, on_error
from diptych.service.queries import Part, stacked
from diptych.service.serving import FACTS, ServedIndex, Serving, answer_key
from diptych.service.shops import Shops

_LARGEST_OPTION = 10_000  # number that clients may set, such as ef_search
_IndexName = Query(None, max_length=1024, description="Of GET /v1/indexes; the first by default.")


class Service:
    """The routes of the API."""

    def __init__(self, serving: Serving, options: ServeOptions, counters: Counters) -> None:
        self.serving, self.options, self.counters = serving, options, counters
        self.thumbnails = Thumbnails()
        self._begun = time.monotonic()
        self._max_pixels = int(options.max_pixels * 1_000_000)

    def add_routes(self, app: FastAPI) -> None:
        """Declare the routes."""

        jpeg: dict[str, Any] = {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}}
        image = {200: jpeg | {"description": "A JPEG."}, 304: {"description": "As the ETag says."}}
        for method, path, act, answer, more in (
            ("GET", "/v1/health", self.health, schemas.Health, {}),
            ("GET", "/v1/indexes", self.list_indexes, schemas.IndexesResponse, {}),
            ("POST", "/v1/search", self.search, schemas.SearchResponse, {}),
            ("POST", "/v1/search/image", self.search_image, schemas.SearchResponse, {}),
            ("POST", "/v1/explain", self.explain, schemas.ExplainResponse, {}),
            ("POST", "/v1/embeddings", self.embeddings, schemas.EmbeddingsResponse, {}),
            ("POST", "/v1/items", self.add_items, schemas.ItemsResponse, {}),
            ("DELETE", "/v1/items/{item:path}", self.delete_item, schemas.ItemsResponse, {}),
            ("GET", "/v1/items/{item:path}/image", self.image, None, image),
            ("GET", "/metrics", self.metrics, None, {}),
        ):
            kind = Response if answer is None else JSONResponse
            known: dict[str, Any] = {"response_model": answer, "responses": PROBLEMS | more}
            app.api_route(path, methods=[method], response_class=kind, **known)(act)

    async def health(self) -> Response:
        """Say whether the process lives, and whether it is ready: 503 until it is."""
        ready = self.serving.ready
        known = {"live": True, "ready": ready, "version": __version__}
        known["uptime_seconds"] = round(time.monotonic() - self._begun, 3)
        return JSONResponse(known, 200 if ready else 503)

    async def list_indexes(self) -> Response:
        """List the indexes that are served, and what can be asked of each."""
        self.serving.get(None)
        listed = []
        for served in self.serving.indexes.values():
            index = served.searcher.index
            known = {"name": served.name, "items": len(index), "kind": served.searcher.kind}
            known |= {"engine": index.engine_name, "vectors": index.engine().vectors, "width": index.width}
            known |= {"encoder": index.encoder, "fingerprint": served.fingerprint, "fields": served.fields}
            known |= {"writable": self.options.writable, "description": index.describe()}
            listed.append(known)
        return JSONResponse({"indexes": listed, "scorer": self.options.scorer is not None})

    async def search(self, request: schemas.SearchRequest) -> Response:
        """Search by text, image, vector, item or a mixture of them."""
        names = request.index if isinstance(request.index, list) else [request.index]
        served = [self.serving.get(name) for name in names]
        key = answer_key(served, request.model_dump_json().encode())
        if (encoded := self.serving.kept(key)) is None:
            hits, more = await self.found(served, request)
            note = "; ".join(sorted({one.searcher.note for one in served} - {""}))
            rest = json.dumps({"indexes": [one.name for one in served], "more": more, "note": note})
            encoded = f'{rest[:-1]}, "hits": {await served[0].as_json(hits)}}}'.encode()
            self.serving.keep(key, encoded)
        return Response(encoded, media_type="application/json")

    async def search_json(self, body: bytes) -> Response:
        return await self.search(_parsed(schemas.SearchRequest.model_validate_json, body))

    async def search_image(self, image: list[UploadFile], request: Annotated[str, Form()] = "{}") -> Response:
        """Search by images sent as files; ``request`` is a SearchRequest as JSON, without them."""
        parts = [
            {"image": base64.b64encode(await one.read()).decode()} for one in image[: schemas.MOST_PARTS + 1]
        ]
        try:
            known = json.loads(request)
            known["parts"] = [*known.get("parts", []), *parts]
            return await self.search(_parsed(schemas.SearchRequest.model_validate, known))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"request is no JSON of a search: {error}", "a SearchRequest without images"
            ) from None

    async def found(
        self, served: Sequence[ServedIndex], given: schemas.SearchRequest
    ) -> tuple[list[tuple[str, float]], bool]:
        """Return the hits of a request and whether there are more."""
        parts = await self.parts(given)
        how: dict[str, Any] = {"exact": given.exact, "options": dict(given.options)}
        for name, value in given.options.items():
            if name in ("where", "first") or (
                isinstance(value, int | float) and abs(value) > _LARGEST_OPTION
            ):
                raise UsageError(f"option {name}={value!r:.60} of a search", "leave it out, or ask for less")
        if given.where is not None:
            how["options"]["where"] = given.where
        return await self.serving.search(served, parts, given.offset, given.k, given.threshold, **how)

    async def parts(self, given: schemas.QueryRequest) -> list[Part]:
        """Return the parts of a query, images decoded."""
        found = []
        for part in given.all_parts():
            [kind] = part.kinds()
            value = getattr(part, kind)
            if kind == "image":
                value = await decoded(value, self._max_pixels)
                await self.serving.complete.wait()
            found.append(Part(kind, value, part.weight))  # type: ignore[arg-type]
        return found

    async def explain(self, request: schemas.ExplainRequest) -> Response:
        """Say which terms of a query and an item make up the score of their match, in a sparse index."""
        return JSONResponse(await self.explained(self.serving.get(request.index), request))

    async def explained(self, served: ServedIndex, given: schemas.ExplainRequest) -> dict[str, Any]:
        """Return the terms of a match."""
        index = served.searcher.index
        if not served.sparse or not hasattr(served.searcher.encoder, "sparsifier"):
            raise UsageError(
                f"index {served.name!r} has no head that made its terms", "ask an index of a sparse head"
            )
        if given.match not in index:
            raise UnknownNameError("item", given.match, [])
        from diptych.sparse.explain import Bag, Match

        query, item = await asyncio.gather(
            served.answer(await self.parts(given), 0), served.answer([Part("item", given.match)], 0)
        )
        words = [part.text for part in given.all_parts() if part.text]
        image = None if words else (lambda: served.searcher.image(given.match))
        vocabulary = served.searcher.encoder.sparsifier.vocabulary
        bag = Bag("query", query.vector, [" ".join(words)], image)
        match = Match.of(vocabulary, bag, Bag(given.match, item.vector), given.shown)
        terms = [one._asdict() for one in match.terms]
        return {"score": match.score, "terms": terms, "more": match.more, "rest": match.rest}

    async def embeddings(self, given: schemas.EmbeddingsRequest) -> Response:
        """Encode texts, and images given as data: URLs; the shape is that of OpenAI's API."""
        served = self.serving.get(given.model)
        inputs = [given.input] if isinstance(given.input, str) else given.input
        self._check_count(len(inputs))
        pictured = [text.startswith("data:image/") for text in inputs]
        if not all(map(str.strip, inputs)):
            raise UsageError("an input is empty", "give texts, or data: URLs of images")
        images = [
            await decoded(one, self._max_pixels)
            for one, is_image in zip(inputs, pictured, strict=True)
            if is_image
        ]
        texts = [one for one, is_image in zip(inputs, pictured, strict=True) if not is_image]
        text_rows, image_rows = map(iter, await self.serving.rows(served, texts, images))
        data = []
        for place, is_image in enumerate(pictured):
            row = next(image_rows if is_image else text_rows)
            row = (row.toarray() if issparse(row) else np.asarray(row))[0].astype("<f4")
            shown = (
                base64.b64encode(row.tobytes()).decode()
                if given.encoding_format == "base64"
                else row.tolist()
            )
            data.append({"object": "embedding", "index": place, "embedding": shown})
        size = sum(map(len, texts))
        usage = {"prompt_tokens": size, "total_tokens": size}
        return JSONResponse({"object": "list", "model": served.name, "data": data, "usage": usage})

    async def add_items(self, given: schemas.ItemsRequest) -> Response:
        """Add images to an index; they are on disk, and found, when the answer comes (``--writable``)."""
        served = self._writable(given.index)
        self._check_count(len(given.items))
        if served.searcher.kind != "image":
            raise UsageError(
                f"index {served.name!r} is of {served.searcher.kind}s", "add to an index of images"
            )
        contents = [image_bytes(item.image) for item in given.items]
        images = [await decoded(item.image, self._max_pixels) for item in given.items]
        keys = [fingerprint_stream(io.BytesIO(content)) for content in contents]
        ids = [item.id or key for item, key in zip(given.items, keys, strict=True)]
        records = []
        for item, key, content in zip(given.items, keys, contents, strict=True):
            if taken := set(FACTS) & set(item.metadata):
                message = f"metadata has a field {min(taken)!r}, which is taken"
                raise UsageError(message, "give the field another name")
            records.append(dict(item.metadata))
            if (sent := served.stored.sent) is not None:
                file = sent / key[:2] / f"{key}.img"
                records[-1] |= {"path": str(file), "size": len(content), "content": key}
                await asyncio.to_thread(_write, file, content)
        _, rows = await self.serving.rows(served, [], images)
        captions = [item.captions for item in given.items]
        stored, replace = served.stored, given.replace
        new = stacked(rows)
        await served.lane.do(
            lambda: stored.add(ids, new, records=records, captions=captions, replace=replace)
        )
        return await self._changed(served, ids)

    async def delete_item(self, item: str, index: str | None = _IndexName) -> Response:
        """Delete an item; it is gone from the disk's index when the answer comes (``--writable``)."""
        served = self._writable(index)
        if item not in served.searcher.index:
            raise UnknownNameError("item", item, [])
        stored = served.stored
        await served.lane.do(lambda: stored.delete([item]))
        return await self._changed(served, [item])

    async def _changed(self, served: ServedIndex, ids: Sequence[str]) -> Response:
        await self.serving.follow(served)
        count = len(served.stored.index)
        return JSONResponse({"index": served.name, "ids": list(ids), "items": count})

    def _writable(self, name: str | None) -> ServedIndex:
        served = self.serving.get(name)
        if not self.options.writable:
            raise ProblemError(403, "this service is read-only", "start it with --writable")
        return served

    def _check_count(self, count: int) -> None:
        if count > self.options.max_items:
            limit = f"{self.options.max_items:,} are allowed"
            raise ProblemError(413, f"{count:,} items in one request, {limit}", "send fewer at a time")

    async def image(
        self,
        request: Request,
        item: str,
        index: str | None = _IndexName,
        width: int = Query(640, ge=1, le=4096, description=f"Of the longer side; made are {WIDTHS}."),
    ) -> Response:
        """Return an item's image as a JPEG."""
        served = self.serving.get(index)
        if item not in served.searcher.index or not served.searcher.shows(item):
            raise UnknownNameError("item with an image", item, [])
        if served.searcher.path(item) == "":
            await asyncio.to_thread(served.searcher.locate)
        try:
            tag, content = await self.thumbnails.get(served.searcher, item, width)
        except DataError as error:
            raise ProblemError(404, error.message, error.fix or "index the collection again") from None
        headers = {"etag": f'"{tag}"', "cache-control": "private, max-age=3600"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="image/jpeg", headers=headers)

    async def metrics(self) -> Response:
        """Return counters in Prometheus' text format."""
        lanes = {id(one.lane): one.lane for one in self.serving.indexes.values()}
        self.counters.waiting.set(sum(lane.waiting for lane in lanes.values()))
        return Response(
            generate_latest(self.counters.registry), headers={"content-type": CONTENT_TYPE_LATEST}
        )


def _parsed(validate: Callable[[Any], schemas.SearchRequest], content: Any) -> schemas.SearchRequest:
    try:
        return validate(content)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)) from None


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, content)


def create_app(targets: Sequence[str], options: ServeOptions | None = None) -> Guard:
    """Return the ASGI application that serves indexes.

    Args:
        targets: folders of indexes, folders of runs with indexes in them, ``qdrant:`` addresses.
        options: as of ``diptych serve``; where it listens is up to what runs the application.

    ::

        uvicorn.run(create_app(["runs/flickr8k/index-images-exact"]))
    """
    from diptych.service.page import Page

    options, counters = options or ServeOptions(), Counters()
    serving = Serving(targets, options, counters)
    service = Service(serving, options, counters)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = asyncio.create_task(serving.open())
        watching = asyncio.create_task(serving.watch())
        yield
        for one in (opening, watching):
            one.cancel()
            with suppress(asyncio.CancelledError, DiptychError):
                await one
        await asyncio.to_thread(serving.close)

    facts: dict[str, Any] = {"title": "Diptych", "version": __version__, "summary": "Image–text search"}
    app = FastAPI(**facts, lifespan=lifespan, docs_url=None, redoc_url=None)
    for kind in (DiptychError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, on_error)
    service.add_routes(app)
    Shops(serving, options.scorer).add_routes(app)
    Page(service).add_routes(app)
    return Guard(app, serving, counters, "/v1/search", service.search_json)
