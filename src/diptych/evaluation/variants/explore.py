"""Explore: try variants of the protocol, few changes first, and hold each against what was printed.

All variants of up to two changes are tried. If none of them prints every cell alike, the nearest ones are changed
further, up to ``changes`` changes. The order of work, and so the result, depends only on the inputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from diptych.core.context import report_to, task
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import Target, as_target
from diptych.evaluation.variants.axes import AXES, DEPTHS, Axis, Choice, Settings, Sources
from diptych.evaluation.variants.exploration import NEAR, TOLERANCE, Change, Exploration, Variant
from diptych.evaluation.variants.recompute import NotPossible, Recompute, Scored
from diptych.metrics import DIRECTIONS, UNSCORED, Candidates, GroundTruth, Reranked
from diptych.metrics.sources import similarity as similarity_of

_EXHAUSTIVE = 2  # changes up to which everything is tried
_BEAM = 16  # of the nearest that are changed further
_PAIRS = 4_000  # made-up targets at most
_RARE = 0.05  # what more made-up targets than these meet as nearly is not put before what is simpler


def distinct(variants: Iterable[Variant]) -> list[Variant]:
    """Return the first of those with the same values."""
    found: dict[tuple[float, ...], Variant] = {}
    for one in variants:
        found.setdefault(tuple(round(value, 9) for value in one.values.values()), one)
    return list(found.values())


def luck(variants: Sequence[Variant], target: Target, tolerance: float, met: str) -> float | None:
    """Return the share of made-up targets that some variant meets too: where it is large, a fit says little.

    They lie halfway (geometric mean, cell by cell) between two tried variants that differ by more than the
    tolerance. They meet as ``explains`` or ``is_near`` of :class:`Variant` says, with as few changes as the simplest
    that does, or as ``is_exact`` does. None where nothing meets the real one, or no two variants are far apart.
    """
    meeting = [one for one in variants if getattr(one, met)]
    if not meeting:
        return None
    if met != "is_exact":
        fewest = max(1, min(len(one.changes) for one in meeting))
        variants = [one for one in variants if len(one.changes) <= fewest]
    allowed = {"explains": tolerance, "is_near": NEAR * tolerance, "is_exact": 0.0}[met]
    half = np.array([cell.unit / 2 for cell in target.cells.values()])
    values = np.array([list(one.values.values()) for one in distinct(variants)])
    one, other = np.triu_indices(len(values), 1)
    apart = np.abs(values[one] - values[other]) > tolerance * np.maximum(values[one], values[other])
    pairs = np.flatnonzero(np.any(apart, axis=1))
    if not len(pairs):
        return None
    hits = []
    for pair in pairs[:: -(-len(pairs) // _PAIRS)]:
        made_up = np.sqrt(values[one[pair]] * values[other[pair]])
        near = np.abs(values - made_up) <= np.maximum(allowed * made_up, half) + 1e-9
        hits.append(bool(np.any(np.all(near, axis=1))))
    return float(np.mean(hits))


def explore(
    sources: Sources,
    target: Target,
    *,
    tolerance: float = TOLERANCE,
    axes: Iterable[str | Axis] | None = None,
    changes: int = 4,
    threads: int | None = None,
    warnings: Sequence[str] = (),  # what has to be known before any verdict, e.g. that the data are others
) -> Exploration:
    """Try variants and say which bring what was printed within tolerance.

    A printed sum of recalls that are printed too is no cell of its own.
    """
    if not 0 < tolerance < 1:
        raise UsageError(f"tolerance is {tolerance}, it must lie between 0 and 1", "0.05 is 5 %")
    for label, source in sources.items():
        if not source.truth.n_images or not source.truth.n_texts:
            raise DataError(f"{label} has {source.truth.n_images} images and {source.truth.n_texts} texts")
    chosen = [AXES.get(axis) if isinstance(axis, str) else axis for axis in axes or AXES]
    target = target.independent
    choices = {axis.name: list(axis.choices(sources, target)) for axis in chosen}
    search = _Search(sources, target, choices, tolerance, threads)
    exhaustive = max(1, min(_EXHAUSTIVE, changes))
    with task("variants", unit="variants") as search.bar:
        for count in range(exhaustive + 1):
            search.try_all(count)
        for _ in range(exhaustive, changes):
            if any(one.is_exact for one in search.found.values()):
                break
            search.widen()
        search.complete()
    some = list(search.found.values())
    near_luck = luck(some, target, tolerance, "is_near")
    near = min((len(one.changes) for one in some if one.is_near), default=exhaustive + 1)
    fewest = min((len(one.changes) for one in some if one.explains), default=near)
    telling = fewest < near <= exhaustive and near_luck is not None and near_luck <= _RARE

    def order(one: Variant) -> tuple[Any, ...]:
        simplest = (len(one.changes), -len(one.exact)) if one.explains else (0, 0)
        return not one.explains, telling and not one.is_near, *simplest, *one.distance

    variants = sorted(some, key=order)
    return Exploration(
        target=target,
        tolerance=tolerance,
        choices=choices,
        variants=variants,
        refused=dict(sorted(search.refused.items(), key=lambda one: (-len(one[1]), one[0]))),
        exhaustive=exhaustive,
        luck=luck(variants, target, tolerance, "explains"),
        near_luck=near_luck,
        exact_luck=luck(variants, target, tolerance, "is_exact"),
        telling=telling,
        warnings=warnings,
        galleries=search.recompute.sizes(search.default),
        about={label: dict(source.about) for label, source in sources.items()},
    )


class _Search:
    def __init__(
        self,
        sources: Sources,
        target: Target,
        choices: dict[str, list[Choice]],
        tolerance: float,
        threads: int | None,
    ) -> None:
        self._target, self._tolerance = target, tolerance
        fields: dict[str, Any] = {}
        for default, *_ in choices.values():
            fields |= default.fields
        first = next(iter(sources))
        self.default = Settings(**{"source": first, **fields})
        self._options = {
            Change(axis, one.name): one for axis, (_, *others) in choices.items() for one in others
        }
        deepest, depth = sources[first].most_matched, self.default.depth
        most = max(DEPTHS) if deepest is None else min(deepest, max(DEPTHS)) if deepest else 16
        self.recompute = Recompute(
            sources, target.cells, most if depth == "everything" else max(most, depth), threads
        )
        self.found: dict[tuple[Change, ...], Variant] = {}
        self.refused: dict[str, list[tuple[Change, ...]]] = {}
        self._seen: set[tuple[Change, ...]] = set()
        self.bar: Any = None

    def try_all(self, count: int) -> None:
        self._try(combinations(self._options, count))

    def widen(self) -> None:
        """Try one more change for the nearest, and for those with most cells printed alike."""
        near = sorted((one for one in self.found.values() if one.changes), key=lambda one: one.distance)
        alike = sorted(near, key=lambda one: -len(one.exact))
        kept = {one.changes: one for some in (near, alike) for one in distinct(some)[:_BEAM]}
        self._try((*changes, other) for changes in kept for other in self._options)

    def complete(self) -> None:
        """Try every part of what explains, so that a minimal explanation is one."""
        for one in [one for one in self.found.values() if one.explains]:
            for count in range(1, len(one.changes)):
                self._try(combinations(one.changes, count))

    def _try(self, untried: Iterable[Sequence[Change]]) -> None:
        new: list[tuple[tuple[str, ...], tuple[Change, ...], Settings]] = []
        for changes in map(tuple, map(sorted, untried)):
            if changes in self._seen or len({change.axis for change in changes}) < len(changes):
                continue
            self._seen.add(changes)
            options = [self._options[change] for change in changes]
            fields = {name: value for one in options for name, value in one.fields.items()}
            settings = replace(self.default, **fields)
            if all(one.applies(settings) for one in options):
                # Variants of one view next to each other, so that its candidates serve all.
                view = (settings.source, settings.captions, settings.partition, settings.relevance)
                new.append(((*view, str(settings.depth).rjust(12)), changes, settings))
        for _, changes, settings in sorted(new, key=lambda one: one[:2]):
            try:
                with report_to(None):  # one bar for all variants, none for each of their rankings
                    self.found[changes] = self._judged(changes, settings)
            except NotPossible as error:
                self.refused.setdefault(str(error), []).append(changes)
            finally:
                self.bar.advance(1)

    def _judged(self, changes: tuple[Change, ...], settings: Settings) -> Variant:
        values, cells = self.recompute.cells(settings), self._target.cells
        errors = {name: cell.error(values[name]) for name, cell in cells.items()}
        within, near = (
            tuple(name for name, cell in cells.items() if cell.within(values[name], tolerance))
            for tolerance in (self._tolerance, NEAR * self._tolerance)
        )
        exact = tuple(name for name, cell in cells.items() if cell.is_print_of(values[name], settings.rule))
        return Variant(changes, values, errors, within, near, exact)


GIVEN = "given"  # what the test set is called


def explore_scores(
    scores: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    matching: object = None,
    adds_contrastive: bool = False,  # whether the final score is matching + contrastive score (BLIP)
    also: Mapping[str, Scored] | None = None,  # by label, further test sets of the model: another split
    tolerance: float = TOLERANCE,  # relative distance per cell that counts as explained
    axes: Iterable[str | Axis] | None = None,  # what to vary; everything by default
    changes: int = 4,  # up to how many changes of protocol are combined
    threads: int | None = None,
    image_ids: Sequence[str] | None = None,  # for random captions as of ``Collection.random_captions``
    label: str = "",  # where the target was printed
) -> Exploration:
    """Say which choice of protocol would explain printed numbers, from score matrices.

    For example, are the recalls of a two-stage model those of few re-ranked candidates?

    >>> found = explore_scores(contrastive, caption_image, {"i2t R@1": 64.6, "i2t R@5": 84.5, "i2t R@10": 84.5},
    ...                        matching=matching)  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    Under the default protocol 1 of 3 printed cells are within 5 %, ...
    k_test = 2 explains it: only the 2 best candidates of each query are re-ranked, ...

    ``found.explanations`` has what explains it, the best first; empty where nothing does.

    Args:
        scores: (n_images, n_texts) scores that rank everything: contrastive ones, or the only ones there are.
        ground_truth: a :class:`GroundTruth`; or (n_texts,) the image row of each text; or (n_images, n_texts)
            booleans; or a mapping from image rows to text rows; or how many texts each image has, where they
            stand next to each other; None where that number follows from the shape.
        target: what was printed, shares in per cent; see :func:`diptych.evaluation.printed.target.as_target`.
        matching: scores of a second stage that reads image and text together: a matrix of the same shape;
            or one of each direction, ``{"i2t": (n_images, n_texts), "t2i": (n_texts, n_images)}``, in which
            -100 marks what was not scored; or :class:`Reranked`. None where there is one stage.
    """
    printed, matrix = as_target(target, label=label), np.asarray(scores)
    truth, metadata = as_ground_truth(ground_truth, matrix.shape)
    whole, reranked = as_matching(matching, matrix, adds_contrastive)
    source = Scored(matrix, truth, whole, reranked, adds_contrastive, metadata, image_ids)
    share, warnings = float(np.mean(matrix == UNSCORED)) if matrix.size else 0.0, []
    if share:
        warnings.append(
            f"{100 * share:.1f} % of the scores are {UNSCORED:g}, which published evaluations write where nothing was "
            "scored: they are cut already, and R@K beyond the candidates is what ties give; with the whole contrastive "
            "scores, and these as matching={'i2t': …, 't2i': …}, the number of candidates is known"
        )
    how: dict[str, Any] = {"tolerance": tolerance, "axes": axes, "changes": changes, "threads": threads}
    return explore({GIVEN: source, **(also or {})}, printed, warnings=warnings, **how)


def explore_rows(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    similarity: str = "cosine",
    reranked: Reranked | None = None,
    also: Mapping[str, Scored] | None = None,
    image_ids: Sequence[str] | None = None,
    label: str = "",
    **how: Any,
) -> Exploration:
    """Say which choice of protocol would explain printed numbers, from (n_images, d) and (n_texts, d) embeddings.

    They are float32, of unit length where cosine is meant. ``reranked`` are matching scores of each query's best
    candidates; all others as of :func:`explore_scores`.
    """
    truth, metadata = as_ground_truth(ground_truth, (len(images), len(texts)))
    scores = similarity_of(similarity).source(images, texts)
    source = Scored(scores, truth, reranked=reranked, about=metadata, image_ids=image_ids)
    return explore({GIVEN: source, **(also or {})}, as_target(target, label=label), **how)


_FORMS = (
    "a GroundTruth, the image row of each text, a boolean matrix (images, texts), a mapping from image rows to "
    "text rows, or how many texts each image has"
)


def as_ground_truth(given: object, shape: tuple[int, ...]) -> tuple[GroundTruth, dict[str, str]]:
    """Return which texts belong to which images, and what was assumed for it."""
    if len(shape) != 2:
        text = f"scores of shape {shape} are no matrix"
        raise DataError(text, "give (n_images, n_texts): a row for each image")
    n_images, n_texts = shape
    if isinstance(given, GroundTruth):
        return given, {}
    if given is None or isinstance(given, (int, np.integer)):
        each, rest = divmod(n_texts, n_images) if n_images else (0, n_texts)
        if rest or not each or (given is not None and given != each):
            number = "" if given is None else f", {given} of each"
            raise UsageError(
                f"{n_texts:,} texts of {n_images:,} images{number}: which belong together does not follow",
                "rows of the scores are images: transpose them" if n_texts < n_images else f"give {_FORMS}",
            )
        truth = GroundTruth.from_caption_image(np.repeat(np.arange(n_images), each), n_images)
        assumed = f"{each} texts of each image, next to each other (assumed)"
        return truth, {"ground truth": assumed} if given is None else {}
    if isinstance(given, Mapping):
        pairs = [(int(image), int(text)) for image, texts in given.items() for text in np.atleast_1d(texts)]
        images, texts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return GroundTruth.from_pairs(images, texts, n_images, n_texts), {}
    array = np.asarray(given)
    if array.dtype == np.bool_ and array.ndim == 2:
        if array.shape != shape:
            raise DataError(f"ground truth of shape {array.shape} for scores of shape {shape}", _FORMS)
        image_rows, text_rows = np.nonzero(array)
        return GroundTruth.from_pairs(image_rows, text_rows, n_images, n_texts), {}
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) != n_texts:
            turned = len(array) == n_images
            raise DataError(
                f"ground truth of {len(array):,} texts for scores of {n_images:,} images and {n_texts:,} texts",
                "rows of the scores are images: transpose them" if turned else "name the image of every text",
            )
        return GroundTruth.from_caption_image(array, n_images), {}
    raise UsageError(f"ground truth of type {type(given).__name__} is not understood", f"give {_FORMS}")


def as_matching(
    given: object, scores: np.ndarray, adds_contrastive: bool
) -> tuple[np.ndarray | None, Reranked | None]:
    """Return matching scores of everything, or of candidates; see :func:`explore_scores`."""
    if given is None or isinstance(given, Reranked):
        return None, given
    if isinstance(given, Mapping) or (isinstance(given, (tuple, list)) and len(given) == 2):
        sides = dict(given) if isinstance(given, Mapping) else dict(zip(DIRECTIONS, given, strict=True))
        if set(sides) != set(DIRECTIONS):
            raise UsageError(f"matching scores of {', '.join(map(str, sides))}", "give i2t and t2i")
        i2t, t2i = (np.asarray(sides[name]) for name in DIRECTIONS)
        for name, one, shape in (("i2t", i2t, scores.shape), ("t2i", t2i, scores.shape[::-1])):
            if one.shape != shape:
                text = f"matching scores {name} of shape {one.shape}"
                raise DataError(text, f"{shape} is expected: a row for each query")
        if not _unscored(i2t).any() and np.array_equal(i2t, t2i.T):
            return i2t, None
        both = (_candidates(i2t, scores, "i2t"), _candidates(t2i, scores.T, "t2i"))
        return None, Reranked(*both, adds_contrastive=adds_contrastive)
    matrix = np.asarray(given)
    if matrix.ndim == 2 and (missing := int(_unscored(matrix).sum())):
        raise UsageError(
            f"{missing:,} matching scores are missing (-100, NaN or infinite)",
            "what was scored differs by direction: give {'i2t': (n_images, n_texts), 't2i': (n_texts, n_images)}",
        )
    return matrix, None


def _unscored(matrix: np.ndarray) -> np.ndarray:
    return np.asarray((matrix == UNSCORED) | ~np.isfinite(matrix))


def _candidates(matching: np.ndarray, scores: np.ndarray, what: str) -> Candidates:
    """Return the scored items of every query, best contrastive score first."""
    scored = ~_unscored(matching)
    counts = np.count_nonzero(scored, axis=1)
    k, row = int(counts.max(initial=0)), int(counts.argmin())
    if not k or counts[row] != k:
        text = f"matching scores {what}: query {row} has {int(counts[row])} scored items, others {k}"
        raise DataError(text, "score as many of each")
    items = np.nonzero(scored)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(scores, items, axis=1), axis=1, kind="stable")
    items = np.take_along_axis(items, order, axis=1).astype(np.int64)
    return Candidates(
        items, *(np.take_along_axis(of, items, axis=1).astype("f4") for of in (scores, matching))
    )
