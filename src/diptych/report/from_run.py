"""From a run and what was evaluated of it to the content of its report."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from diptych.data.collection import Collection
from diptych.encoders.encoded import EncodedCollection
from diptych.evaluation import Result
from diptych.evaluation import Score as Measured
from diptych.evaluation.evaluate_encoder import ground_truth_of
from diptych.metrics import GainMeasure, Measure, measure, similarity
from diptych.report.content import Curves, Headline, ReportContent, Score, TableRow
from diptych.report.retrievals import Query, Retrieval, Retrieved
from diptych.training.run import Run

_SHOWN = 5
_EXAMPLES = 3


def content_of_run(
    run: Run,
    result: Result,
    encoded: EncodedCollection,
    collection: Collection,
    with_shortcuts: Result | None = None,
) -> ReportContent:
    """Everything a run's report shows."""
    recipe = run.recipe
    best, worst = _examples(result, encoded, collection)
    notes = list(collection.notes)
    if not run.finished:
        notes.append("The run is not finished: these are the numbers of its best epoch so far.")
    return ReportContent(
        title=recipe.name,
        subtitle=f"{recipe.description or recipe.objective['name']} · {collection.describe()}",
        protocol_line=result.protocol_line(),
        headlines=_headlines(result, with_shortcuts),
        table=_table(result),
        curves=_curves(run),
        best_retrievals=best,
        worst_retrievals=worst,
        recipe_text=recipe.to_toml(),
        environment=_environment(run),
        fingerprints={"encoder": encoded.images.encoder, "test data": encoded.about["data"]},
        notes=notes,
        commands=[f"diptych train {run.folder.name}/recipe.toml --out again", "diptych evaluate again"],
    )


def _headlines(result: Result, with_shortcuts: Result | None) -> list[Headline]:
    rsum = result.score("rsum")
    headlines = [Headline("rsum", f"{rsum.value:.1f}", f"{rsum.value / rsum.chance:.0f} × chance, of 600")]
    for direction, words in (("i2t", "image → text"), ("t2i", "text → image")):
        headlines.append(Headline(f"R@1 {words}", f"{100 * result.value('R@1', direction):.1f} %"))
    if with_shortcuts is not None:
        value = with_shortcuts.score("rsum").value
        headlines.insert(
            1, Headline("rsum with shortcuts", f"{value:.1f}", "the rest of the page is without")
        )
    return headlines


def _score(score: Measured | None, factor: float) -> Score | None:
    if score is None:
        return None
    low, high = (None if end is None else factor * end for end in (score.low, score.high))
    return Score(factor * score.value, low, high, factor * score.chance)


def _table(result: Result) -> list[TableRow]:
    rows = []
    for name in dict.fromkeys(name for given in result.scores.values() for name in given):
        declared = measure(name)
        share = isinstance(declared, Measure) and declared.kind == "share"
        factor = 100.0 if share else 1.0
        cells = {key: _score(given.get(name), factor) for key, given in result.scores.items()}
        rows.append(
            TableRow(
                measure=name,
                image_to_text=cells.get("i2t"),
                text_to_image=cells.get("t2i"),
                both=cells.get("both"),
                unit="%" if share else "",
                decimals=3 if isinstance(declared, GainMeasure) else 1,
                description=declared.description,
            )
        )
    return rows


def _curves(run: Run) -> Curves | None:
    steps = [line for line in run.metrics() if "loss" in line]
    epochs = [line for line in run.metrics() if "validation" in line]
    if not steps:
        return None
    return Curves(
        steps=[line["step"] for line in steps],
        loss=[line["loss"] for line in steps],
        learning_rate=[line["learning_rate"] for line in steps],
        epochs=[line["epoch"] for line in epochs],
        validation_rsum=[line["validation"]["rsum"] for line in epochs],
        best_epoch=run.header.get("best_epoch"),
        chance_rsum=epochs[0]["validation"]["chance"] if epochs else None,
    )


def _environment(run: Run) -> dict[str, str]:
    from diptych.core.files import read_json

    values = read_json(run.folder / "environment.json")
    libraries = values.pop("libraries")
    return {**{k: str(v) for k, v in values.items() if v is not None}, **libraries}


def _examples(
    result: Result, encoded: EncodedCollection, collection: Collection
) -> tuple[list[Retrieval], list[Retrieval]]:
    """Queries of both directions answered best and worst: by rank, then by the margin of the score."""
    best: list[Retrieval] = []
    worst: list[Retrieval] = []
    for direction in ("t2i", "i2t"):
        ranks = result.ranks[direction]
        order = np.argsort(ranks, kind="stable")
        answered = ranks <= len(encoded.images) + len(encoded.texts)
        # Spread the good ones over the first right answers instead of taking the first few of a file.
        right = order[ranks[order] <= 1.0]
        spread = right[np.linspace(0, len(right) - 1, min(_EXAMPLES, len(right))).astype(int)]
        best += _retrievals(
            direction, spread if len(right) else order[:_EXAMPLES], ranks, encoded, collection
        )
        bad = order[answered[order]][::-1][:_EXAMPLES]
        worst += _retrievals(direction, bad, ranks, encoded, collection)
    return best, worst


def _retrievals(
    direction: str,
    chosen: np.ndarray,
    ranks: np.ndarray,
    encoded: EncodedCollection,
    collection: Collection,
) -> Iterable[Retrieval]:
    images, texts, ordered = encoded.images.rows, encoded.texts.rows, np.sort(chosen)
    truth = ground_truth_of(encoded).positives(direction)
    compared = similarity(encoded.similarity)
    rows, scores = (
        compared.best(images[ordered], texts, "i2t", _SHOWN)
        if direction == "i2t"
        else compared.best(images, texts[ordered], "t2i", _SHOWN)
    )
    place = {int(query): number for number, query in enumerate(ordered)}
    for query in chosen.tolist():
        relevant = set(truth.of(query).tolist())
        hits = [
            _item(direction, int(row), float(score), int(row) in relevant, collection)
            for row, score in zip(rows[place[query]], scores[place[query]], strict=True)
        ]
        asked = (
            Query(collection.caption_ids[query], caption=collection.captions[query])
            if direction == "t2i"
            else Query(collection.image_ids[query], picture=partial(collection.image, query))
        )
        expected = None
        if relevant and not any(hit.is_right for hit in hits):
            right = min(relevant)
            pair = (query, right) if direction == "i2t" else (right, query)
            score = compared.score(images[pair[0]], texts[pair[1]])
            expected = _item(direction, right, score, True, collection)
        yield Retrieval(asked, hits, round(float(ranks[query])), expected)


def _item(direction: str, row: int, score: float, right: bool, collection: Collection) -> Retrieved:
    if direction == "t2i":
        caption = next(iter(collection.captions_of(row)), "")
        return Retrieved(collection.image_ids[row], score, right, caption, partial(collection.image, row))
    return Retrieved(collection.caption_ids[row], score, right, collection.captions[row])
