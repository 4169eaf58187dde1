"""The page of a run: test scores, curves, best and worst retrievals, recipe, environment."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from diptych.core.chart import Chart, Series
from diptych.core.files import safe_name
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.data.collection import Collection
from diptych.encoders.embeddings import EncodedCollection, Origin
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of
from diptych.evaluation.shortcuts import WITH
from diptych.metrics import similarity
from diptych.report.document import Block, Card, Gallery, Headline, Page, Section, Text, state_of
from diptych.training.run import Run

_SHOWN = 5
_EXAMPLES = 3
_WORDS = {"t2i": "text → image", "i2t": "image → text"}


def report_of(run: Run, encoded: EncodedCollection, origin: Origin) -> Page:
    """Return the page of a run, measured anew: it takes a moment, and cannot be of other weights or other measures."""
    result, collection = evaluate_encoded(encoded), origin.collection()
    combined = run.folder / "evaluation" / f"{safe_name(f'{collection.name}-{origin.split}')}-{WITH}"
    both = Result.open(combined) if (combined / "evaluation.json").is_file() else None
    return run_page(run, result, encoded, collection, both)


def run_page(
    run: Run,
    result: Result,
    encoded: EncodedCollection,
    collection: Collection,
    with_shortcuts: Result | None = None,
) -> Page:
    recipe, rsum = run.recipe, result.score("rsum")
    environment = read_json(run.folder / "environment.json")
    libraries = environment.pop("libraries")
    facts = {**environment, **libraries, "encoder": encoded.images.encoder, "data": encoded.about["data"]}
    described = f"{recipe.description or recipe.objective['name']}; data: {collection.describe()}"
    notes = [*collection.notes, described]
    if not run.finished:
        notes.append("The run is not finished: these are the numbers of its best epoch so far.")
    headlines = [Headline("rsum", f"{rsum.value:.1f}", f"{rsum.value / rsum.chance:.0f} × chance, of 600")]
    if with_shortcuts is not None:
        value = f"{with_shortcuts.score('rsum').value:.1f}"
        headlines.append(Headline("rsum with shortcuts", value, "the rest of the page is without"))
    for way in ("i2t", "t2i"):
        headlines.append(Headline(f"R@1 {_WORDS[way]}", f"{100 * result.value('R@1', way):.1f} %"))
    best, worst = _examples(result, encoded, collection)
    built_from: list[Block] = [
        Text(recipe.name, recipe.to_toml()),
        _facts("Environment and fingerprints", facts),
    ]
    sections = [
        Section("Results", [*result.tables(), *result.charts()]),
        Section("Training", curves(run)),
        Section("Best retrievals", best),
        Section("Worst retrievals", worst),
        Section("Recipe and environment", built_from),
    ]
    return Page(
        title=f"{recipe.name} on {collection.name}, {encoded.about.get('split') or 'all'}",
        summary=f"A caption finds its image first in {100 * result.value('R@1', 't2i'):.1f} % of cases, an image one of"
        f" its captions in {100 * result.value('R@1', 'i2t'):.1f} %; chance is"
        f" {100 * result.score('R@1', 't2i').chance:.2g} %.",
        headlines=headlines,
        sections=[section for section in sections if section.blocks],
        protocol=result.protocol_line(),
        notes=notes,
        commands=[f"diptych train {run.folder.name}/recipe.toml --out again", "diptych evaluate again"],
    )


def _facts(title: str, facts: dict[str, object]) -> Table:
    rows = [(name, str(value)) for name, value in facts.items() if value is not None]
    return replace(Table.of(title, "", ("", "value"), rows), folded=True)


def curves(run: Run) -> list[Chart]:
    """Return charts of what was logged while training: loss, validation, learning rate."""
    steps = [line for line in run.metrics() if "loss" in line]
    epochs = [line for line in run.metrics() if "validation" in line]
    if not steps:
        return []
    x, loss = [line["step"] for line in steps], np.array([line["loss"] for line in steps])
    window = max(1, len(loss) // 30) // 2 * 2 + 1
    drawn = [
        Series(f"mean of {window}" if window > 1 else "as logged", running_mean(loss, window).tolist(), x)
    ]
    if window > 1:
        drawn.append(Series("as logged", loss.tolist(), x, colour="blue", pale=True))
    charts = [Chart("Training loss", drawn, "step", "loss")]
    if epochs:
        at, rsums = [line["epoch"] for line in epochs], [line["validation"]["rsum"] for line in epochs]
        place = int(np.argmax(rsums))
        if run.numbers.get("best_epoch") in at:
            place = at.index(run.numbers["best_epoch"])
        best = Series(
            f"best: {rsums[place]:.1f}, epoch {at[place]:g}", [rsums[place]], [at[place]], mark="point"
        )
        chance = Series(f"chance: {epochs[0]['validation']['chance']:.1f}", [epochs[0]["validation"]["chance"]],
                        mark="level")  # fmt: skip
        charts.append(
            Chart(
                "Validation rsum", [Series("validation", rsums, at), best, chance], "epoch", "sum of R@k in %"
            )
        )
    rates = [line["learning_rate"] for line in steps]
    return [*charts, Chart("Learning rate", [Series("", rates, x)], "step", "learning rate")]


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of each value and its neighbours, ``window`` of them in all, centred, fewer at the ends."""
    values = np.asarray(values, dtype=np.float64)
    half = window // 2
    rows = np.arange(len(values))
    low, high = np.maximum(rows - half, 0), np.minimum(rows + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((sums[high] - sums[low]) / (high - low))


def _examples(
    result: Result, encoded: EncodedCollection, collection: Collection
) -> tuple[list[Block], list[Block]]:
    """Return queries of both directions answered best and worst: by rank, then by the margin of the score."""
    best: list[Block] = []
    worst: list[Block] = []
    for direction in ("t2i", "i2t"):
        ranks = result.ranks[direction]
        order = np.argsort(ranks, kind="stable")
        answered = ranks <= len(encoded.images) + len(encoded.texts)
        # Spread the good ones over the first right answers instead of taking the first few of a file.
        right = order[ranks[order] <= 1.0]
        spread = right[np.linspace(0, len(right) - 1, min(_EXAMPLES, len(right))).astype(int)]
        good = spread if len(right) else order[:_EXAMPLES]
        best += _retrievals(direction, good, ranks, encoded, collection)
        bad = order[answered[order]][::-1][:_EXAMPLES]
        worst += _retrievals(direction, bad, ranks, encoded, collection)
    return best, worst


def _retrievals(
    direction: str,
    chosen: np.ndarray,
    ranks: np.ndarray,
    encoded: EncodedCollection,
    collection: Collection,
) -> Iterable[Gallery]:
    images, texts, ordered = encoded.images.rows, encoded.texts.rows, np.sort(chosen)
    truth = ground_truth_of(encoded).positives(direction)
    compared = similarity(encoded.similarity)
    rows, scores = (
        compared.best(images[ordered], texts, "i2t", _SHOWN)
        if direction == "i2t"
        else compared.best(images, texts[ordered], "t2i", _SHOWN)
    )
    place = {int(query): rank for rank, query in enumerate(ordered)}
    for number, query in enumerate(chosen.tolist()):
        relevant = set(truth.of(query).tolist())
        hits = [
            item_card(direction, int(row), float(score), int(row) in relevant, collection, f"{rank}")
            for rank, (row, score) in enumerate(zip(rows[place[query]], scores[place[query]], strict=True), 1)
        ]
        if relevant and not any(hit.state == "right" for hit in hits):
            right = min(relevant)
            pair = (query, right) if direction == "i2t" else (right, query)
            rows_of_pair = images[pair[0]][None], texts[pair[1]][None]
            score = float(compared.source(*rows_of_pair).pairs(np.array([0]), np.array([0]))[0])
            label = f"should be first, is {round(float(ranks[query])):,}"
            hits.append(item_card(direction, right, score, True, collection, label))
        label = f"query {'' if direction == 'i2t' else collection.caption_ids[query]}"
        query_card = (
            Card(collection.caption_ids[query], text=collection.captions[query], label=label)
            if direction == "t2i"
            else Card(collection.image_ids[query], partial(collection.image, query), label=label)
        )
        yield Gallery("" if number else _WORDS[direction], hits, query_card)


def item_card(
    direction: str, row: int, score: float, right: bool | None, collection: Collection, label: str
) -> Card:
    """Return the card of a retrieved image (``t2i``) with one of its captions, or of a retrieved caption."""
    state, shown = state_of(right), f"{score:.3f}"
    if direction == "t2i":
        caption = next(iter(collection.captions_of(row)), "")
        return Card(collection.image_ids[row], partial(collection.image, row), caption, label, state, shown)
    return Card(collection.caption_ids[row], None, collection.captions[row], label, state, shown)
