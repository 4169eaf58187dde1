"""Result: numbers with their chance level, their interval and the protocol that made them, partition included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.artifact import STORED_AS, Artifact
from diptych.core.chart import Chart, Series
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.table import Cell, Table, Tabular
from diptych.metrics import DIRECTIONS, Bootstrap, GroundTruth, Sum, measure
from diptych.metrics.sources import Rows

if TYPE_CHECKING:
    from diptych.evaluation.comparison import Comparison

_FOLDS = re.compile(r"folds\((?P<count>[0-9]+)\)")
_FAMILY = "folds(n)"


@dataclass(frozen=True, eq=False)
class Fold:
    """One gallery: the rows of its images and texts, and which belong together."""

    images: Rows
    texts: Rows
    ground_truth: GroundTruth


@dataclass(frozen=True)
class Partition:
    """A protocol: into how many galleries of equal size the images are cut, in their order."""

    name: str
    count: int = 1
    of_coco: bool = False  # whether it is only for the COCO test split

    def folds(self, ground_truth: GroundTruth) -> Iterator[Fold]:
        """Yield the galleries, each with its ground truth."""
        # 25,010 captions in all; 25,000 with the first five of each image.
        if self.of_coco and (ground_truth.n_images != 5_000 or ground_truth.n_texts < 25_000):
            raise DataError(
                "the COCO test split has 5,000 images and at least 25,000 captions, "
                f"got {ground_truth.n_images:,} images and {ground_truth.n_texts:,} captions",
                "give the whole Karpathy test split, or use the protocol 'full' or 'folds(n)'",
            )
        if self.count == 1:
            yield Fold(slice(0, ground_truth.n_images), slice(0, ground_truth.n_texts), ground_truth)
            return
        size, rest = divmod(ground_truth.n_images, self.count)
        if rest or not size:
            text = f"{ground_truth.n_images:,} images cannot be cut into {self.count} equal folds"
            raise UsageError(text, "choose a number of folds that divides the number of images")
        homeless = int(np.sum(ground_truth.text_image < 0))
        if homeless:
            text = f"{homeless:,} texts belong to no image, so to no fold"
            raise UsageError(text, "use the protocol 'full'")
        fold_of_text = ground_truth.text_image // size
        for fold in range(self.count):
            images = np.arange(fold * size, (fold + 1) * size)
            texts = np.flatnonzero(fold_of_text == fold)
            yield Fold(neighbours(images), neighbours(texts), ground_truth.subset(images, texts))


def neighbours(rows: np.ndarray) -> Rows:
    """Return neighbouring rows as a slice, which copies nothing."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


PARTITIONS = {
    one.name: one
    for one in (
        Partition("coco-1k", 5, of_coco=True),
        Partition("coco-5k", of_coco=True),
        Partition("full"),
        Partition(_FAMILY),
    )
}
"""The protocols by name; values of several galleries are averaged.

Sources: Karpathy and Fei-Fei, CVPR 2015; of COCO in five galleries of 1,000 Faghri et al., VSE++, BMVC 2018.
"""


def partition(name: str) -> Partition:
    """Return the protocol called ``name``: ``"full"``, ``"coco-1k"``, ``"coco-5k"``, ``"folds(10)"``, ..."""
    found = _FOLDS.fullmatch(name)
    if found is not None and int(found["count"]):
        return Partition(name, int(found["count"]))
    if found is not None or name == _FAMILY:
        raise UsageError(f"protocol {name!r} needs a number of at least one fold", "for example folds(5)")
    if name not in PARTITIONS:
        raise UnknownNameError("protocol", name, PARTITIONS)
    return PARTITIONS[name]


def one_gallery(protocol: str) -> Partition:
    """Return the protocol called ``protocol``, refused where it has several galleries."""
    chosen = partition(protocol)
    if chosen.count > 1:
        text = f"protocol {protocol!r} has {chosen.count} galleries, and candidates were chosen from one"
        fix = "use the protocol 'full' or 'coco-5k', or re-rank and evaluate each fold as a collection of its own"
        raise UsageError(text, fix)
    return chosen


OWN_GAINS = "the cosine by the evaluated model"
"""How the protocol says that no other model says how relevant an item is."""

_REST = {
    "miss": "which rank after the gallery",
    "contrastive": "whose positives follow the candidates in contrastive order",
    "published": "whose positives tie with all that was not scored, at -100",
}


@dataclass(frozen=True)
class Reranking:
    """The second stage of a number: what was scored again, and what became of the rest."""

    k_test: dict[str, int]  # per direction, how many candidates of each query were scored again
    gallery: dict[str, int]  # per direction, how many items there were to choose from
    score: str  # what ranks the candidates: ``"matching"`` or ``"matching + contrastive"``
    unranked: str  # what became of positives that are no candidates; see :mod:`diptych.evaluation.reranking`
    queries: dict[str, int]  # per direction, how many queries are evaluated
    without_ranked_positive: dict[str, int]  # how many of them have positives, none of which is a candidate

    def line(self) -> str:
        whole = [name for name, k in self.k_test.items() if k == self.gallery[name]]
        sizes = [f"{k:,} {name}" for name, k in self.k_test.items()]
        if len(set(self.k_test.values())) == 1:
            sizes = [f"{next(iter(self.k_test.values())):,}"]
        whole_text = f" ({' and '.join(whole)}: the whole gallery)" if whole else ""
        counts = " and ".join(
            f"{count:,} of {self.queries[name]:,} {name}"
            for name, count in self.without_ranked_positive.items()
        )
        return (
            f"re-ranked k_test {', '.join(sizes)}{whole_text} by {self.score} score, unranked {self.unranked}: "
            f"{counts} queries have no ranked positive, {_REST[self.unranked]}"
        )


def interval_line(how: Bootstrap, corrected: str = "", of: str = "images") -> str:
    resamples = f"{how.samples:,} resamples of {of}, seed {how.seed}"
    return f"{100 * how.confidence:g} % intervals{corrected} from {resamples}"


@dataclass(frozen=True)
class Protocol:
    """Everything a number depends on besides the embeddings."""

    name: str  # the protocol's name, e.g. ``"coco-1k"``
    n_images: int  # images in the test set
    n_texts: int  # texts in the test set
    texts_per_image: tuple[int, int]  # least and most positives of an image query
    images_per_text: tuple[int, int]  # least and most positives of a text query
    galleries: int  # into how many folds the test set was cut; values are averaged over them
    ties: str  # the tie rule
    any_of_k: tuple[str, ...]  # measures for which only the best positive of a query counts
    all_positives: tuple[str, ...]  # measures for which every positive counts
    compat: tuple[str, ...]  # what follows published conventions instead of plain definitions
    without_positive: dict[str, int]  # per direction, queries that have none; they score 0 in every mean
    samples: int  # bootstrap resamples of images; 0 for no intervals
    confidence: float  # coverage of the intervals
    seed: int  # of the bootstrap
    about: dict[str, Any] = field(default_factory=dict)  # dataset, split, fingerprints, training seed, ...
    # or ``"dot"``, ``"order"``, ``"given scores"``; empty where only candidates are ranked
    similarity: str = "cosine"
    # per direction, how many queries are evaluated, unless all; results on disk call it "asked"
    evaluated: dict[str, int] = field(default_factory=dict, metadata={STORED_AS: "asked"})
    reranking: Reranking | None = None  # the second stage; None where there is only one stage
    gains: dict[str, str] = field(default_factory=dict)  # per measure, what an item is worth and by what
    items: str = ""  # a fingerprint of the ids of images and texts; empty where they have none
    data_kind: str = ""  # what ``about["data"]`` is of: ``"pictures"``, ``"regions"``, or given ``"rows"``

    def line(self) -> str:
        per_image = "–".join(str(count) for count in dict.fromkeys(self.texts_per_image))
        per_text = "–".join(str(count) for count in dict.fromkeys(self.images_per_text))
        parts = [f"{key} {value}" for key, value in self.about.items()]
        parts.append(
            f"{self.name}: {self.n_images:,} images, {self.n_texts:,} texts "
            f"({per_image} per image, {per_text} per text)"
        )
        parts += [f"{count:,} {direction} queries evaluated" for direction, count in self.evaluated.items()]
        if self.similarity:
            parts.append(f"similarity {self.similarity}")
        if self.reranking is not None:
            parts.append(self.reranking.line())
        if self.galleries > 1:
            parts.append(f"mean of {self.galleries} galleries")
        if self.any_of_k:
            parts.append(f"any-of-k for {', '.join(self.any_of_k)}")
        if self.all_positives:
            parts.append(f"all positives for {', '.join(self.all_positives)}")
        for worth in dict.fromkeys(self.gains.values()):
            names = ", ".join(name for name, gain in self.gains.items() if gain == worth)
            parts.append(f"gains of {names}: {worth}")
        parts.append(f"ties {self.ties}")
        parts += [f"compat {what}" for what in self.compat]
        parts += [
            f"{count:,} {direction} queries without a positive count as 0"
            for direction, count in self.without_positive.items()
            if count
        ]
        if self.samples:
            parts.append(interval_line(Bootstrap(self.samples, self.confidence, self.seed)))
        return "; ".join(parts)


BOTH = "both"  # where a sum over both directions is kept
_HEADS = {"i2t": "image → text", "t2i": "text → image"}


@dataclass(frozen=True)
class Score:
    value: float  # a share in [0, 1], a rank from 1, or a sum in per cent
    chance: float  # what a model that knows nothing gets
    low: float | None = None  # lower end of the interval; None without one
    high: float | None = None  # upper end


@dataclass(frozen=True, eq=False)
class Result(Tabular, Artifact, kind="evaluation", version=2, recreate="diptych evaluate"):
    """The values of an evaluation, with chance levels, intervals and the protocol that they depend on."""

    protocol: Protocol
    scores: dict[str, dict[str, Score]]  # per direction, or ``"both"`` for sums, and measure
    # per direction and measure, one float64 per query, NaN for one that was not evaluated
    per_query: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    # per direction, the rank of each query's best positive, expected where ties leave it open
    ranks: dict[str, np.ndarray] = field(default_factory=dict)
    # (n_texts,) the image each text was written for, -1 for none: queries that are resampled together
    text_image: np.ndarray | None = None

    def score(self, name: str, direction: str = BOTH) -> Score:
        """Return a measure's value, chance and interval; ``direction`` is ``i2t``, ``t2i`` or, of sums, ``both``."""
        if direction not in self.scores:
            raise UnknownNameError("direction", direction, self.scores)
        if name not in self.scores[direction]:
            raise UnknownNameError(f"{direction} measure", name, self.scores[direction])
        return self.scores[direction][name]

    def value(self, name: str, direction: str = BOTH) -> float:
        """Return a measure's value: a share in [0, 1], a rank from 1, or a sum in per cent."""
        return self.score(name, direction).value

    @property
    def rsum(self) -> float:
        """Return R@1 + R@5 + R@10 of both directions, in per cent: 600 at most."""
        if "rsum" in self.scores.get(BOTH, {}):
            return self.value("rsum")
        return 100 * sum(self.value(f"R@{k}", way) for way in DIRECTIONS for k in (1, 5, 10))

    def folds(self) -> list[dict[str, float]]:
        """Return the values of each gallery under flat names, as :meth:`values` has their means."""
        truth = GroundTruth.from_directions(
            *(([], []), ([], [])),
            self.protocol.n_images,
            self.protocol.n_texts,
            text_image=self.text_image,
        )
        found = []
        for fold in partition(self.protocol.name).folds(truth):
            values: dict[str, float] = {}
            for way, rows in zip(DIRECTIONS, (fold.images, fold.texts), strict=True):
                for name, each in self.per_query[way].items():
                    member = measure(name)
                    assert not isinstance(member, Sum)
                    evaluated = each[rows][~np.isnan(each[rows])]
                    values[f"{way} {name}"] = member.aggregate.of(evaluated)
            for name in self.scores.get(BOTH, {}):
                parts = getattr(measure(name), "parts", ())
                values[name] = 100 * sum(values[f"{way} {part}"] for way in DIRECTIONS for part in parts)
            found.append(values)
        return found

    def compare(self, other: Result, **options: Any) -> Comparison:
        """Compare another model's result on the same test set with this one: differences, intervals, p-values.

        Args:
            options: as of :func:`diptych.evaluation.compare`.
        """
        from diptych.evaluation.significance import compare

        mine, theirs = (str(one.protocol.about.get("encoder", "rows"))[:8] for one in (self, other))
        names = (mine, theirs) if mine != theirs else ("this", "other")
        return compare(dict(zip(names, (self, other), strict=True)), **options)

    def __repr__(self) -> str:
        of = " ".join(str(self.protocol.about.get(key, "")) for key in ("dataset", "split")).strip()
        values = ", ".join(
            f"{name} {measure(name.split()[-1]).show(one)}" for name, one in self.values().items()
        )
        sizes = f"{self.protocol.n_images:,} images, {self.protocol.n_texts:,} texts"
        return f"<Result{f' on {of}' if of else ''}: {sizes}; {values}>"

    def values(self) -> dict[str, float]:
        """Return all values under flat names: ``"i2t R@1"``, ``"t2i R@1"``, ``"rsum"``, ..."""
        return {
            name if direction == BOTH else f"{direction} {name}": score.value
            for direction, given in self.scores.items()
            for name, score in given.items()
        }

    def tables(self) -> list[Table]:
        """Return the measures with their intervals and chance; shares in per cent."""
        rows = []
        for name in dict.fromkeys(name for given in self.scores.values() for name in given):
            show = measure(name).show
            found = {way: given[name] for way, given in self.scores.items() if name in given}
            cells = [Cell(""), Cell("")]
            for place, way in enumerate((BOTH, "") if BOTH in found else DIRECTIONS):
                if way in found:
                    score = found[way]
                    ends = "" if score.low is None else f"{show(score.low)}–{show(score.high or 0)}"
                    cells[place] = Cell(show(score.value), ends, value=score.value)
            chances = dict.fromkeys(show(score.chance) for score in found.values())
            head = Cell(name, "both directions" if BOTH in found else "")
            rows.append([head, *cells, Cell(" / ".join(chances))])
        gains = ", gains as they are" if self.protocol.gains else ""
        after = f"shares in per cent, ranks from 1{gains}; intervals: {100 * self.protocol.confidence:g} %"
        heads = ("measure", _HEADS["i2t"], _HEADS["t2i"], "chance")
        return [Table("Scores", heads, rows, after=after)]

    def charts(self) -> list[Chart]:
        """Return recalls of both directions with their intervals, against chance."""
        ways = [name for name in DIRECTIONS if name in self.scores]
        names = [name for name in ("R@1", "R@5", "R@10") if all(name in self.scores[way] for way in ways)]
        if not ways or not names:
            return []
        bars = []
        for way in ways:
            scores = [self.scores[way][name] for name in names]
            low, high = (
                [None if end is None else 100 * end for end in ends]
                for ends in zip(*((score.low, score.high) for score in scores), strict=True)
            )
            values = [100 * score.value for score in scores]
            texts = [f"{value:.1f}" for value in values]
            bars.append(Series(_HEADS[way], values, low=low, high=high, mark="bar", texts=texts))
        chance = [100 * max(self.scores[way][name].chance for way in ways) for name in names]
        bars.append(Series("chance", chance, mark="dash"))
        return [Chart("Recall against chance", bars, "", "% of queries", names)]

    def protocol_line(self) -> str:
        """Return everything that the values depend on, in one line."""
        return self.protocol.line()

    def lines(self) -> list[str]:
        return [self.protocol_line()]
