"""Routes for shops: images for categories, categories for products, purchase intent of sessions."""

import asyncio
import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from diptych.core.errors import UnknownNameError, UsageError
from diptych.service import schemas
from diptych.service.problems import PROBLEMS, ProblemError
from diptych.service.queries import Part
from diptych.service.serving import ServedIndex, Serving

_SPARE = 4  # times as many products are looked at as picked: those without an image are passed over


class Shops:
    """What category runs and scorers answer."""

    def __init__(self, serving: Serving, scorer: Path | None) -> None:
        self.serving, self._scorer = serving, None
        if scorer is not None:
            from diptych.commerce.purchase_intent import Scorer

            self._scorer = Scorer.open(scorer)
            self._scorer.stream()  # refuses one of tables

    def add_routes(self, app: FastAPI) -> None:
        """Declare the routes."""
        for path, answer, act in (
            ("/v1/categories/pick", schemas.Picks, self.pick),
            ("/v1/categories/fill", schemas.Filled, self.fill),
            ("/v1/intent/score", schemas.Scores, self.score),
        ):
            app.post(path, response_model=answer, responses=PROBLEMS)(act)

    def _products(self, name: str | None) -> ServedIndex:
        named = [one for one in self.serving.indexes.values() if hasattr(one.searcher, "catalogue")]
        served = self.serving.get(name) if name or not named else named[0]
        if served not in named:
            raise UsageError(
                f"index {served.name!r} is not of products", "serve one of diptych categories index"
            )
        return served

    async def pick(self, request: schemas.PickRequest) -> dict[str, Any]:
        """Pick the best products with an image for each category, named by its name or path."""
        served = self._products(request.index)
        together = (served.answer([Part("text", name)], _SPARE * request.k) for name in request.categories)
        picks = {}
        for name, found in zip(request.categories, await asyncio.gather(*together), strict=True):
            pictured = [hit for hit in found.hits if served.searcher.shows(hit[0])]
            picks[name] = await served.described(pictured[: request.k])
        return {"picks": picks}

    async def fill(self, request: schemas.FillRequest) -> dict[str, Any]:
        """Suggest a category for each product, as far down its path as the model is sure."""
        served = self._products(request.index)
        for name in request.items:
            if name not in served.searcher.index:
                raise UnknownNameError("item", name, [])
        searcher: Any = served.searcher
        found = await served.lane.do(
            lambda: searcher.fill(request.items, request.threshold), len(request.items)
        )
        return {"products": json.loads(json.dumps(found, default=float))}

    async def score(self, request: schemas.ScoreRequest) -> dict[str, Any]:
        """Predict how likely sessions end in a purchase, as far as they have come, and why."""
        if (scorer := self._scorer) is None:
            raise ProblemError(404, "no scorer is served", "start the service with --scorer FOLDER")
        lines = [json.dumps(session) for session in request.sessions]
        work = lambda: [scorer.answer(line, reasons=request.reasons) for line in lines]  # noqa: E731
        return {"scores": await asyncio.to_thread(work)}
