"""The rows of chapter 3's studies: a dense encoder, and heads that make bags of terms of its rows.

Heads are called d2s-η-EXPANSION: ``d2s-1e-3-c+w``. Expansion is what captions may have besides their own
terms in training: ``0`` nothing, ``1`` anything, ``c`` anything when a draw per batch says so, ``c+w`` and each
term when a draw of its own does.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from diptych.core.errors import ImageError
from diptych.studies.claims import Check, Finding, missing
from diptych.studies.results import examples, per_query_of
from diptych.studies.study import Row, Setting, SettingName
from diptych.studies.verdict import Evidence, difference

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image
    from scipy.sparse import csr_array

    from diptych.report.document import Gallery
    from diptych.studies.sparse_retrieval import Head


HOME = "d2s.table-3.1"
"""The study in whose folder all heads and their dense rows are."""

ETAS = ("1e-2", "1e-3", "1e-4", "1e-5")
"""η, the weight of the L1 regulariser, from the sparsest on."""

EXPANSIONS = ("0", "1", "c", "c+w")
REGULATED = "c+w"
"""The thesis's own method, which table 3.1 shows."""

DENSE = Row("dense", "Dense", "dense", home=HOME, given="dense")
"""What heads are trained on: trained here where the setting has a recipe, or given."""


def head_name(eta: str, expansion: str = REGULATED) -> str:
    """What a head's row is called."""
    return f"d2s-{eta}-{expansion}"


def head_row(eta: str, expansion: str = REGULATED) -> Row:
    """A head on the dense rows."""
    return Row(
        head_name(eta, expansion),
        f"D2S, η = {eta}, exp = {expansion.replace('+', ' + ')}",
        base=DENSE.name,
        home=HOME,
        sparsify={"loss.eta": float(eta), "expansion.mode": expansion},
    )


# How it is trained ------------------------------------------------------------------------------

_PAPER = Setting(
    description="the paper's: rows of BLIP or ALBEF, a DistilBERT vocabulary and head, 200 epochs of 512 pairs",
    recipes={},
    sparsify={
        "vocabulary.source": "distilbert-base-uncased",
        "expansion.schedule": "published",
        "loss.temperature": 0.001,
        "training.epochs": 200,
        "training.batch_size": 512,
        "training.learning_rate": 5e-5,
        "training.projection_learning_rate": 1e-3,
        "training.select": "best",
    },
    search={"items": 123_287, "queries": 1024},
    time="2 h per head; on an A100, in the thesis",
)
# Of a weaker encoder the best scores lie closer together: at a thousandth its targets would be single pictures.
_SMALL = {
    "loss.temperature": 0.02,
    "training.epochs": 30,
    "training.learning_rate": 1e-3,
    "training.projection_learning_rate": 1e-3,
}
_DATA = Setting(
    description="for a processor: a frozen MobileNetV2 and a GRU, a vocabulary learned from the captions, 30 epochs",
    recipes={"dense": "d2s.data.dense.toml"},
    sparsify={**_SMALL, "vocabulary.size": 4000, "head.width": 256, "training.batch_size": 512},
    search={"items": 123_287, "queries": 1024},
    time="30 min; on Flickr8k 20 minutes of a processor core for the dense rows, two to three per head",
)
_QUICK = Setting(
    description="scenes: a small network trained end to end, heads of width 64 over 400 pieces, 30 epochs",
    recipes={"dense": "d2s.quick.dense.toml"},
    sparsify={**_SMALL, "vocabulary.size": 400, "head.width": 64, "training.batch_size": 256},
    search={"items": 4000, "queries": 200},
    time="2 min; 80 seconds of a processor core for the dense rows, 10 per head",
)
SETTINGS: Mapping[SettingName, Setting] = {"paper": _PAPER, "data": _DATA, "quick": _QUICK}

PATHS = ("sparsify.vocabulary.source", "measure.words")
"""Keys whose values can be files or folders."""

NOTES = (
    "Dense rows are given (--set dense=RUN, ENCODER or EMBEDDINGS) or, in the settings data and quick, "
    "trained here. Heads see them as they are, and no labels.",
    "Only captions ask for pictures here, as in the thesis. Where the dense rows are not BLIP's or ALBEF's, "
    "its numbers stand beside ours for orientation alone; whether rows that are given are theirs cannot be "
    "checked.",
    "In the settings data and quick the vocabulary is learned from the captions and the head begins with "
    "their terms' co-occurrence; --set sparsify.vocabulary.source=DISTILBERT takes a masked language "
    "model's.",
    "τ of the targets is 0.001 in the paper's setting and 0.02 in the others, whose encoders are weaker.",
    "Probabilities of expansion rise by 1 / epochs as the thesis says; in the paper's setting as in the "
    "published code, which reaches 1 after 95 % of the epochs. The published code draws for captions alone.",
    "The published loss: natural logarithms, the mean of both directions and η times the mean of both "
    "sides' L1.",
)


def every_step(rows: Sequence[str], column: str, *, rising: bool) -> Check:
    """From each of ``rows`` that was run to the next, ``column`` rises (or falls)."""
    word = "rises" if rising else "falls"

    def check(evidence: Evidence) -> list[Finding]:
        found = evidence.only(rows, column)
        if len(found) < 2:
            return [missing(f"{column} {word} from row to row", f"{column} of two of {rows[0]} … {rows[-1]}")]
        findings = []
        for first, second in pairwise(found):
            apart = difference(found[second], found[first])
            step = apart.mean if rising else -apart.mean
            scale = max(abs(found[first].mean), abs(found[second].mean), 1e-12)
            what = f"{column} {word} from {first} to {second}"
            findings.append(Finding(what, step > 0, str(apart), step / scale))
        return findings

    return check


def tends(rows: Sequence[str], columns: Sequence[str]) -> Check:
    """Along ``rows`` each column rises from first to last, and in at least two of three steps."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{column} tends to rise from {rows[0]} to {rows[-1]}"
            means = [figure.mean for figure in evidence.only(rows, column).values()]
            if len(means) < 2:
                findings.append(missing(what, f"{column} of two of them"))
                continue
            up, steps, whole = sum(b > a for a, b in pairwise(means)), len(means) - 1, means[-1] - means[0]
            detail = f"{means[0]:.1f} to {means[-1]:.1f}, {up} of {steps} steps up"
            findings.append(Finding(what, whole > 0 and 3 * up >= 2 * steps, detail, whole))
        return findings

    return check


def positive(rows: Sequence[str], columns: Sequence[str]) -> Check:
    """Every column of every row that was run is above 0."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = [
            Finding(f"{column} of {row} is positive", figure.mean > 0, f"{figure.mean:.1f}", figure.mean)
            for column in columns
            for row, figure in evidence.only(rows, column).items()
        ]
        return findings or [missing("correlations are positive", *rows)]

    return check


def within(rows: Sequence[str], column: str, low: float, high: float) -> Check:
    """The mean of ``column`` over the rows that were run, or over what is printed of them, is in [low, high]."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{column} is between {low:g} and {high:g} on average"
        found = evidence.only([*rows, "overlap"], column)
        if not found:
            return [missing(what, *rows)]
        mean = sum(figure.mean for figure in found.values()) / len(found)
        return [Finding(what, low <= mean <= high, f"{mean:.1f}", min(mean - low, high - mean))]

    return check


def narrowing(row: str, reference: str, columns: Sequence[str]) -> Check:
    """What ``row`` lacks of ``reference`` becomes less from each of ``columns`` to the next."""

    def check(evidence: Evidence) -> list[Finding]:
        gaps = {}
        for column in columns:
            ours, theirs = evidence.figure(row, column), evidence.figure(reference, column)
            if ours is not None and theirs is not None:
                gaps[column] = theirs.mean - ours.mean
        if len(gaps) < 2:
            return [missing(f"{row} comes nearer to {reference}", f"two of {', '.join(columns)} of both")]
        findings = []
        for first, second in pairwise(gaps):
            what = f"{row} is nearer to {reference} at {second} than at {first}"
            detail = f"{gaps[second]:.1f} against {gaps[first]:.1f}"
            less = gaps[first] - gaps[second]
            findings.append(Finding(what, less > 0, detail, less))
        return findings

    return check


def exceeds_by(row: str, reference: str, column: str, share: float, tolerance: float) -> Check:
    """``row`` is ``share`` above ``reference``, give or take ``tolerance``: numbers that a text names."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row} is {100 * share:g} % above {reference} in {column}"
        one, other = evidence.figure(row, column), evidence.figure(reference, column)
        if one is None or other is None:
            return [missing(what, f"{column} of {row} and {reference}")]
        have = one.mean / other.mean - 1
        off = abs(have - share)
        return [Finding(what, off <= tolerance, f"{100 * have:+.1f} %", tolerance - off)]

    return check


def significantly(pairs: Sequence[tuple[str, str]], columns: Sequence[str], p: float) -> Check:
    """The first of each pair is above the second: in the mean, and by a paired two-tailed t-test.

    What is independent is a picture with its captions; p-values are corrected for as many tests as there are
    (Bonferroni). Printed numbers have no values per query: they are judged by their means.
    """

    def check(evidence: Evidence) -> list[Finding]:
        findings, tested, cluster = [], {}, None
        for better, worse in pairs:
            for column in columns:
                what = f"{better} is above {worse} in {column}"
                one, other = evidence.figure(better, column), evidence.figure(worse, column)
                if one is None or other is None:
                    findings.append(missing(what, f"{column} of {better} and {worse}"))
                    continue
                gap = difference(one, other)
                scale = max(abs(one.mean), abs(other.mean), 1e-12)
                findings.append(Finding(what, gap.mean > 0, str(gap), gap.mean / scale))
                first, second = (per_query_of(evidence, row, column) for row in (better, worse))
                if first is not None and second is not None:
                    tested[what], cluster = (first[0], second[0]), first[1]
        for what, (apart, _, corrected) in paired_tests(tested, cluster).items():
            said = f"{what}, p < {p:g} of {len(tested)} tests"
            if corrected is None:
                findings.append(missing(said, "values per query that differ"))
            else:
                detail = f"p = {corrected:.2g}" if corrected else "p below 1e-300"
                findings.append(Finding(said, corrected < p and apart > 0, detail, p - corrected))
        return findings

    return check


def paired_tests(
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]], cluster: np.ndarray | None
) -> dict[str, tuple[float, float | None, float | None]]:
    """Return mean difference, p-value of the paired t-test and that corrected (Bonferroni); None: it says nothing.

    Args:
        pairs: by name, values of the same captions by two heads, (n,) each.
        cluster: (n,) whole numbers from 0, the picture of each caption; None: every caption by itself, as published.
    """
    import numpy as np

    from diptych.metrics.paired import corrected, shares_of, t_test

    apart, p = [np.subtract(*values) for values in pairs.values()], []
    for values in apart:
        of = np.arange(len(values)) if cluster is None else cluster
        p.append(t_test([shares_of(values, of, int(of.max()) + 1)]))
    means = (float(values.mean()) for values in apart)
    return dict(zip(pairs, zip(means, p, corrected(p, "bonferroni"), strict=True), strict=True))


_COUNT, _TERMS, _SIDE = 6, 10, 112


def examples_of(head: Head, split: str) -> list[dict[str, Any]]:
    """The heaviest terms of some pictures and the first caption of each, evenly spaced over a split.

    Nobody chooses them: the same split gives the same ones, whatever the head.
    """
    import numpy as np

    part, rows = head.dense.collection.split(split), head.sparsified(split)
    pictures = np.linspace(0, part.n_images - 1, min(_COUNT, part.n_images)).round().astype(int)
    pictures = np.unique(pictures)
    captions = [int(part.caption_start[image]) for image in pictures]
    of_captions = _leading(head, rows.texts.rows[captions])
    of_images = _leading(head, rows.images.rows[pictures])
    own = rows.caption_terms
    shown = []
    for place, (image, caption) in enumerate(zip(pictures.tolist(), captions, strict=True)):
        said = set(own.indices[own.indptr[caption] : own.indptr[caption + 1]].tolist())
        shown.append(
            {
                "image": part.image_ids[image],
                "picture": _picture(head, split, image),
                "caption": part.captions[caption],
                "caption terms": _said(head, of_captions[place], said),
                "image terms": _said(head, of_images[place], said),
            }
        )
    return shown


def _leading(head: Head, rows: csr_array) -> list[list[int]]:
    from diptych.sparse.measures import leading_terms

    found = leading_terms(rows, _TERMS, left_out=head.sparsifier.vocabulary.special)
    return [[column for column in row if column >= 0] for row in found.tolist()]


def _said(head: Head, columns: list[int], said: set[int]) -> list[list[Any]]:
    """(term, whether the caption contains it) pairs."""
    from diptych.sparse.explain import readable

    return [[readable(head.sparsifier.vocabulary.terms[column]), column in said] for column in columns]


def _picture(head: Head, split: str, row: int) -> str:
    """A small picture as an address for pages; empty where there is none to read."""
    from diptych.report.pictures import Thumbnail, read_picture

    part = head.dense.collection.split(split)
    try:
        return str(Thumbnail.of(read_picture(part.image(row), part.image_ids[row]), _SIDE))
    except ImageError:  # region features alone, or embeddings of pictures that are not here
        return ""


@dataclass(frozen=True)
class TermExamples:
    """Examples as galleries: an image with its caption, and what each row of the study makes of both."""

    rows: Sequence[str]
    name: str = "examples"
    title: str = "Examples"
    note: str = (
        "The ten heaviest terms, heaviest first, of pictures evenly spaced over the test split and of the first "
        "caption of each. *: the caption contains the term; -ing continues a word."
    )

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Gallery]:
        """Return a gallery per example; nothing where no row has any."""
        from diptych.report.document import Card, Gallery

        shown = {row: found for row in self.rows if (found := examples(evidence, row))}
        galleries = []
        for each in zip(*shown.values(), strict=True):
            cards = [
                Card(row, label=labels[row], facts={kind: _listed(one[f"{kind} terms"]) for kind in _KINDS})
                for row, one in zip(shown, each, strict=True)
            ]
            picture = partial(_decoded, each[0]["picture"]) if each[0]["picture"] else None
            galleries.append(Gallery("", cards, Card(each[0]["image"], picture, each[0]["caption"])))
        return galleries


_KINDS = ("caption", "image")


def _listed(terms: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(f"{term}{'*' if own else ''}" for term, own in terms) or "no term"


def _decoded(address: str) -> Image:
    """The image of a ``data:`` address."""
    from PIL import Image as pillow

    return pillow.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
