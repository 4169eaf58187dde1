"""What a report says, as plain data: whoever has a run or a study fills it, the page only draws it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from diptych.data.collection import Collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation import Result, Score
from diptych.evaluation.evaluate_encoder import ground_truth_of
from diptych.metrics import similarity
from diptych.report.page import Headline
from diptych.report.pictures import PictureSource
from diptych.training.run import Run


@dataclass(frozen=True)
class Query:
    """What was asked: a caption or a picture, one of the two.

    Attributes:
        name: the id in its collection.
        caption: the sentence, when text asks for images.
        picture: the picture, when an image asks for texts.
    """

    name: str
    caption: str | None = None
    picture: PictureSource | None = None


@dataclass(frozen=True)
class Retrieved:
    """One item of a ranking.

    Attributes:
        name: the id in its collection.
        score: similarity to the query.
        is_right: whether it answers the query; ``None`` when nobody has said.
        caption: the retrieved sentence, or a few words for the retrieved picture.
        picture: the retrieved picture, or ``None`` when a sentence was retrieved.
        rank: its place, counted from 1; ``None``: its place in the list it is given in.
    """

    name: str
    score: float
    is_right: bool | None = None
    caption: str = ""
    picture: PictureSource | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Retrieval:
    """A query with the head of its ranking.

    Attributes:
        query: what was asked.
        retrieved: the first items, best first.
        right_rank: place of the first right item in the whole gallery, from 1.
        expected: the right item, shown apart when it is not among ``retrieved``.
    """

    query: Query
    retrieved: Sequence[Retrieved]
    right_rank: int | None = None
    expected: Retrieved | None = None

    @property
    def is_text_to_image(self) -> bool:
        """Whether a caption asks for pictures."""
        return self.query.caption is not None


@dataclass(frozen=True)
class Curves:
    """What was logged while training.

    Attributes:
        steps: (n,) the steps at which the loss was logged, rising.
        loss: (n,) training loss.
        learning_rate: (n,) at the same steps, or empty.
        epochs: (m,) the epochs after which the model was validated, rising.
        validation_rsum: (m,) recall sum on the validation split.
        best_epoch: the epoch of the kept checkpoint; ``None``: the first of the highest rsum.
        chance_rsum: the recall sum of a random order on the same split.
    """

    steps: Sequence[int] = ()
    loss: Sequence[float] = ()
    learning_rate: Sequence[float] = ()
    epochs: Sequence[float] = ()
    validation_rsum: Sequence[float] = ()
    best_epoch: float | None = None
    chance_rsum: float | None = None


@dataclass(frozen=True)
class ReportContent:
    """All a report shows; what is empty is left out of the page.

    Attributes:
        title: the first line, e.g. the run's name.
        subtitle: one line below it: the model, the data.
        protocol_line: dataset, split, numbers of images and captions, any-of-k, ties, seeds, compat:
            printed with the table, without which its figures mean nothing.
        headlines: a few figures shown large.
        scores: of an evaluation, by direction (``i2t``, ``t2i``, ``both``) and measure.
        curves: what was logged while training.
        best_retrievals: queries answered best.
        worst_retrievals: queries answered worst.
        recipe_text: the recipe as TOML.
        environment: library → version and the like; nothing that names a machine.
        fingerprints: of weights, data, preprocessing.
        notes: what a reader of the figures should know, one sentence each.
        commands: how to repeat the run, one command line each.
    """

    title: str
    subtitle: str = ""
    protocol_line: str = ""
    headlines: Sequence[Headline] = ()
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    curves: Curves | None = None
    best_retrievals: Sequence[Retrieval] = ()
    worst_retrievals: Sequence[Retrieval] = ()
    recipe_text: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()


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
        scores=result.scores,
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
        best_epoch=run.numbers.get("best_epoch"),
        chance_rsum=epochs[0]["validation"]["chance"] if epochs else None,
    )


def _environment(run: Run) -> dict[str, str]:
    from diptych.core.reading import read_json

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
