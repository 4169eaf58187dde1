"""The page: a form and its results, which need no script; a script makes the same addresses answer in place."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from jinja2 import Environment, PackageLoader
from pydantic import ValidationError
from starlette.datastructures import FormData, QueryParams, UploadFile

from diptych.core.errors import DiptychError, UnknownNameError
from diptych.core.version import __version__
from diptych.report.style import DARK, LIGHT
from diptych.service import schemas
from diptych.service.app import Service
from diptych.service.guard import COOKIE, PAGE_POLICY
from diptych.service.problems import invalid, status_of
from diptych.service.serving import ServedIndex, pages_of, quoted

_SHOWN = 48  # results at a time
_STATIC = {
    "style.css": ("style.css.j2", "text/css"),
    "page.js": ("page.js", "text/javascript"),
    "icon.svg": ("icon.svg.j2", "image/svg+xml"),
}


@dataclass(frozen=True)
class Asked:
    """What the form holds."""

    words: str = ""
    without: str = ""
    item: str = ""
    image: str = ""  # in base64, of a form that was sent with one
    indexes: Sequence[str] = ()
    least: float = 0.0
    offset: int = 0
    where: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.words or self.item or self.image)

    @classmethod
    async def read(cls, given: QueryParams | FormData, names: Sequence[str]) -> Asked:
        """Read the fields of a form; what is no number counts as not given."""

        def text(name: str) -> str:
            value = given.get(name)
            return value.strip() if isinstance(value, str) else ""

        indexes = [text("index") or names[0], *([text("beside")] if text("beside") else [])]
        where = {name[2:]: str(value) for name, value in given.items() if name.startswith("f.") and value}
        file, image = given.get("image"), ""
        if isinstance(file, UploadFile):
            image = base64.b64encode(await file.read()).decode()
        known = {"words": text("q"), "without": text("not"), "item": text("item"), "image": image}
        numbers = {
            "least": _number(text("least")),
            "offset": int(min(10_000, max(0, _number(text("offset"))))),
        }
        return cls(**known, indexes=list(dict.fromkeys(indexes)), where=where, **numbers)  # type: ignore[arg-type]

    def address(self, **changes: Any) -> str:
        """Return the address of this search, or of one that differs; an image is not part of an address."""
        given: dict[str, Any] = {name: "" if value is None else value for name, value in changes.items()}
        one = replace(self, **given)
        fields: list[tuple[str, str]] = [("q", one.words), ("not", one.without), ("item", one.item)]
        fields += [(name, value) for name, value in zip(("index", "beside"), one.indexes, strict=False)]
        fields += [(f"f.{name}", value) for name, value in one.where.items()]
        fields += [("least", f"{one.least:g}" if one.least else ""), ("offset", str(one.offset or ""))]
        return "/?" + urlencode([pair for pair in fields if pair[1]])

    def request(self, served: ServedIndex) -> schemas.SearchRequest:
        """Return the same search as a request of the API."""
        known = {field: {str(value): value for value in values} for field, values in served.fields.items()}
        where = {name: known.get(name, {}).get(value, value) for name, value in self.where.items()}
        given: dict[str, Any] = {"text": self.words, "item": self.item, "image": self.image}
        given = {name: value for name, value in given.items() if value}
        given |= {"negative": [self.without]} if self.without else {}
        given |= {"where": where} if where else {}
        given |= {"threshold": self.least} if self.least else {}
        try:
            return schemas.SearchRequest(index=served.name, k=_SHOWN, offset=self.offset, **given)
        except ValidationError as error:
            raise invalid(error.errors(include_url=False)) from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if abs(value) < 1e6 else 0.0


class Page:
    """The routes of the page."""

    def __init__(self, service: Service) -> None:
        self.service, self.serving = service, service.serving
        self._templates = Environment(
            loader=PackageLoader("diptych.service"),
            autoescape=lambda name: "html" in (name or ""),
            trim_blocks=True,
        )
        self._templates.globals |= {
            "address": lambda asked, **changes: asked.address(**changes),
            "image_of": _image_of,
            "item_address": _item_address,
            "version": __version__,
        }

    def add_routes(self, app: FastAPI) -> None:
        """Declare the routes; they are no part of the API."""
        hidden: dict[str, Any] = {"include_in_schema": False, "response_class": Response}
        app.get("/", **hidden)(self.search)
        app.post("/", **hidden)(self.search)
        app.get("/item/{item:path}", **hidden)(self.item)
        app.get("/evaluation", **hidden)(self.reports)
        app.get("/evaluation/file", **hidden)(self.report)
        app.get("/categories", **hidden)(self.categories)
        app.get("/static/{name}", **hidden)(self.static)

    def _shown(self, template: str, status: int = 200, **content: Any) -> Response:
        tabs = [("Search", "/"), ("Evaluation", "/evaluation")]
        if any(hasattr(served.searcher, "catalogue") for served in self.serving.indexes.values()):
            tabs.append(("Categories", "/categories"))
        html = self._templates.get_template(template).render(tabs=tabs, **content)
        return Response(html, status, {"content-security-policy": PAGE_POLICY}, "text/html")

    async def search(self, request: Request) -> Response:
        """Show the form with what was found."""
        names = list(self.serving.indexes)
        if request.method == "POST":
            async with request.form(max_files=1) as form:
                asked = await Asked.read(form, names or [""])
        else:
            asked = await Asked.read(request.query_params, names or [""])
        error, status, columns, served = None, 200, [], None
        try:
            served = self.serving.get(asked.indexes[0])
            columns = [await self._column(asked, self.serving.get(name)) for name in asked.indexes]
        except DiptychError as problem:
            error, status = problem, status_of(problem)
        scores = [hit["score"] for column in columns for hit in column["hits"]] if asked else []
        content: dict[str, Any] = {"asked": asked, "error": error, "columns": columns, "names": names}
        content["top"] = max([0.0, *scores])
        content |= {"fields": served.fields if served else {}, "tab": "Search"}
        is_part = request.headers.get("x-fragment") == "1"
        answer = self._shown("results.html.j2" if is_part else "search.html.j2", status, **content)
        if request.query_params.get("token") and self.service.options.token:
            answer.set_cookie(COOKIE, self.service.options.token, httponly=True, samesite="strict")
        return answer

    async def _column(self, asked: Asked, served: ServedIndex) -> dict[str, Any]:
        """Return the results of one index; without a query its first items."""
        searcher, first, size = served.searcher, asked.offset, len(served.searcher.index)
        if asked:
            hits, more = await self.service.found([served], asked.request(served))
            found = f"{first + len(hits):,} of "
            line = f"{size:,} {searcher.kind}s, best first" if more else f"{found}{size:,} {searcher.kind}s"
        else:
            hits = [(name, 0.0) for name in served.searcher.index.some_ids(first, _SHOWN)]
            more, line = first + len(hits) < size, f"{size:,} {searcher.kind}s"
        following = asked.address(offset=first + _SHOWN) if more else ""
        shown = _nearest_caption_first(await served.described(hits), asked.words)
        column = {"index": served.name, "hits": shown, "line": line, "next": following}
        return column | {"note": searcher.note if asked else "", "pictured": searcher.kind != "text"}

    async def item(self, request: Request, item: str) -> Response:
        """Show an item: its image, what is known of it, why it matches, how to ask for it."""
        names = list(self.serving.indexes)
        asked = await Asked.read(request.query_params, names or [""])
        served = self.serving.get(asked.indexes[0])
        if item not in served.searcher.index:
            raise UnknownNameError("item", item, [])
        score, terms = None, None
        if asked.words:
            given = asked.request(served).model_dump(exclude={"index", "k", "offset", "threshold", "exact"})
            query = schemas.ExplainRequest(**given, index=served.name, match=item, shown=12)
            if served.sparse and hasattr(served.searcher.encoder, "sparsifier"):
                terms = await self.service.explained(served, query)
                score = terms["score"]
        [hit] = _nearest_caption_first(await served.described([(item, 0.0)]), asked.words)
        more = asked.address(words="", without="", item=item, offset=0, image="")
        base = str(request.base_url).rstrip("/")
        content: dict[str, Any] = {"hit": hit, "score": score, "terms": terms, "more": more, "tab": "Search"}
        is_part = request.headers.get("x-fragment") == "1"
        template = "item.html.j2" if is_part else "item_page.html.j2"
        return self._shown(template, copies=_copies(base, served.name, item, asked.words), **content)

    async def reports(self, request: Request) -> Response:
        """Show the reports that lie beside the indexes."""
        found = {name: f"/evaluation?show={quoted(name)}" for name in self._reports()}
        chosen = found.get(request.query_params.get("show", ""), next(iter(found.values()), ""))
        return self._shown("reports.html.j2", reports=list(found.items()), chosen=chosen, tab="Evaluation")

    async def report(self, show: str) -> Response:
        """Return a report as it is; it forbids itself foreign scripts and addresses."""
        found = self._reports()
        if show not in found:
            raise UnknownNameError("report", show, found)
        policy = {"content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'"}
        return FileResponse(found[show], headers=policy, media_type="text/html")

    def _reports(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for served in self.serving.indexes.values():
            for name, path in pages_of(served).items():
                if path not in found.values():
                    found[f"{path.parent.name}/{name}"] = path
        return found

    async def categories(self, index: str | None = None) -> Response:
        """Show the tree of an index of products."""
        named = [one for one in self.serving.indexes.values() if hasattr(one.searcher, "catalogue")]
        served = self.serving.get(index) if index else next(iter(named), None)
        if served is None or served not in named:
            raise UnknownNameError("index of products", index or "", [one.name for one in named])
        return self._shown("categories.html.j2", roots=_branches(served), tab="Categories")

    async def static(self, name: str) -> Response:
        """Return the style, the script or the icon."""
        if name not in _STATIC:
            raise UnknownNameError("file", name, _STATIC)
        template, kind = _STATIC[name]
        content = self._templates.get_template(template).render(light=LIGHT, dark=DARK)
        return Response(content, media_type=kind, headers={"cache-control": "public, max-age=3600"})


def _nearest_caption_first(hits: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Order captions by how many of the query's words they have."""
    asked = set(words.lower().split())
    for hit in hits:
        shared = {one: len(asked.intersection(one.lower().split())) for one in hit["captions"]}
        hit["captions"] = sorted(hit["captions"], key=lambda caption: -shared[caption])
    return hits


def _image_of(index: str, item: str, width: int) -> str:
    return f"/v1/items/{quoted(item)}/image?index={quoted(index)}&width={width}"


def _item_address(asked: Asked, index: str, item: str) -> str:
    fields = urlencode([("index", index), *([("q", asked.words)] if asked.words else [])])
    return f"/item/{quoted(item)}?{fields}"


def _copies(base: str, index: str, item: str, words: str) -> dict[str, str]:
    """Return the search as a command and as Python."""
    body: dict[str, Any] = {"index": index, **({"text": words} if words else {"item": item}), "k": 10}
    curl = f"curl -s {base}/v1/search -H 'content-type: application/json' -d {shlex.quote(json.dumps(body))}"
    python = f'import httpx\n\nhits = httpx.post("{base}/v1/search", json={body!r}).json()["hits"]'
    return {"curl": curl, "Python": python}


def _branches(served: ServedIndex) -> list[dict[str, Any]]:
    """Return the category tree as nested nodes with the number of products below each."""
    catalogue: Any = served.searcher.catalogue  # type: ignore[attr-defined]
    roots: list[dict[str, Any]] = []
    nodes: dict[tuple[str, ...], dict[str, Any]] = {}
    counts: dict[tuple[str, ...], int] = {}
    for product in range(len(catalogue)):
        own = [tuple(catalogue.tree.paths[int(node)]) for node in catalogue.places_of(product)]
        for path in {one[:end] for one in own for end in range(1, len(one) + 1)}:
            counts[path] = counts.get(path, 0) + 1
    for path in map(tuple, catalogue.tree.paths):
        asked = Asked(words=" > ".join(path), indexes=[served.name])
        node = {"name": path[-1], "products": counts.get(path, 0), "address": asked.address(), "below": []}
        nodes[path] = node
        (nodes[path[:-1]]["below"] if path[:-1] in nodes else roots).append(node)
    return roots
