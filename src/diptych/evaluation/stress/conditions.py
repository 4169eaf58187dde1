"""Conditions: what one perturbation with one seed did to every query, each kept as soon as it is there.

::

    FOLDER/units/NAME-SEED/arrays.npz        values per query, which were changed, ranks, preferences, the worst hit
    FOLDER/units/NAME-SEED/texts.jsonl.gz    id and text of every changed caption

Only changed queries are encoded. Embeddings of the same text or image differ in their last digits with the batch
that they were encoded in: a changed query whose embedding lies within rounding of the clean one keeps the clean one,
and is counted. Two seeds may draw the same images, pixel for pixel: then one of them is enough, and both hold the
same bytes.
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.perturbations import (
    Perturbation,
    PicturePerturbation,
    TextPerturbation,
    perturb_captions,
)
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.perturbations.pictures import PerturbedSource, perturbed_pictures
from diptych.core.artifact import Artifact
from diptych.core.context import check_stop, report_to, task
from diptych.core.errors import CaptionError, NumericalError
from diptych.core.files import write_bytes
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.reading import read_jsonl
from diptych.core.version import __version__
from diptych.data.collection import Collection
from diptych.data.images import split_overlay
from diptych.data.language import Language
from diptych.data.language.tagged import tag_captions
from diptych.data.loading import read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.stress.queries import RANK, Queries
from diptych.metrics import Direction

_ROUNDING = 2.0**-20  # of every number: unit rows that differ by no more are the same row


@dataclass(frozen=True, eq=False)
class Change:
    changed: np.ndarray  # (n,) booleans
    content: str  # a fingerprint of the changed queries
    options: Mapping[str, Any]
    reasons: Mapping[str, int]  # how many queries stayed, by reason
    texts: Sequence[str] = ()  # the changed texts in order, of captions

    @property
    def places(self) -> np.ndarray:
        """Return (q,) which queries were changed."""
        return np.flatnonzero(self.changed)


def same_rows(rows: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """Return (n,) booleans: which of (n, d) rows lie within rounding of the clean ones."""
    return np.asarray((np.abs(rows - clean) <= _ROUNDING).all(axis=1))


_BLOCK = 2048


def changed_captions(
    perturbation: TextPerturbation,
    captions: Sequence[str],
    ids: Sequence[str],
    options: Mapping[str, Any],
    **how: Any,
) -> Change:
    """Return what :func:`~diptych.analysis.perturbations.perturb_captions` makes of captions."""
    with report_to(None):
        found = perturb_captions(perturbation, captions, ids, options=options, **how)
    places = np.flatnonzero(found.changed).tolist()
    texts = [found.texts[place] for place in places]
    values = options_of(perturbation, options).model_dump(mode="json")
    return Change(found.changed, fingerprint(places, texts), values, found.reasons, texts)


def encode_captions(
    encoder: DualEncoder, texts: Sequence[str], names: Sequence[str], what: str
) -> np.ndarray:
    """Return (n, d) rows of texts, each distinct text encoded once."""
    places: dict[str, int] = {}
    which = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    distinct, counts = list(places), np.bincount(which, minlength=len(places))
    rows = np.empty((len(distinct), encoder.width), dtype=np.float32)
    with task(what, len(texts), "captions") as bar:
        for start in range(0, len(distinct), _BLOCK):
            block = distinct[start : start + _BLOCK]
            try:
                with report_to(None):
                    rows[start : start + len(block)] = encoder.encode_texts(block)
            except (CaptionError, NumericalError) as error:
                first = names[int(np.argmax(which >= start))]
                raise type(error)(f"changed captions from {first} on: {error.message}", error.fix) from None
            bar.advance(int(counts[start : start + len(block)].sum()))
            check_stop()
    return rows[which]


_BATCH = 64
_LOOKED_AT = 16


def look_alike(one: Collection, other: Collection) -> bool:
    """Return whether the first images of two perturbed views are the same: then all of them may be."""
    first = range(min(_LOOKED_AT, one.n_images))
    mine, theirs = ([digest for digest, *_ in _looked_at(view, first)] for view in (one, other))
    return mine == theirs


def encode_pictures(
    encoder: DualEncoder | None, perturbed: Collection, options: Mapping[str, Any], what: str = "perturbed"
) -> tuple[Change, np.ndarray]:
    """Make every image of a perturbed view once; return what was changed, and (q, d) rows of that.

    Without an encoder there are no rows.
    """
    seen, width = [], 0 if encoder is None else encoder.width
    blocks, batch = [np.empty((0, width), dtype=np.float32)], list[tuple[Any, str]]()
    with task(what, perturbed.n_images, "images") as bar:
        for row, (digest, reason, prepared) in enumerate(
            _looked_at(perturbed, range(perturbed.n_images), encoder)
        ):
            seen.append((digest, reason))
            if encoder is None:
                continue
            if not reason:
                batch.append((prepared, perturbed.image_ids[row]))
            if batch and (len(batch) == _BATCH or row == perturbed.n_images - 1):
                blocks.append(encoder.encode_prepared(*map(list, zip(*batch, strict=True))))
                bar.advance(len(batch))
                check_stop()
                batch = []
    reasons = Counter(reason for _, reason in seen if reason)
    changed = np.array([not reason for _, reason in seen], dtype=bool)
    content = fingerprint([digest for digest, _ in seen])
    return Change(changed, content, options, dict(reasons.most_common())), np.concatenate(blocks)


def _looked_at(
    perturbed: Collection, rows: Iterable[int], encoder: DualEncoder | None = None
) -> Iterator[tuple[str, str, Any]]:
    """Yield a view's images: digest, why it stays as it is (empty when changed), and prepared for an encoder."""
    source, places = perturbed.source, perturbed.source_rows
    assert isinstance(source, PerturbedSource)

    def look(row: int) -> tuple[str, str, Any]:
        item = perturbed.item(row)
        reason = source.outcome(int(places[row]))
        if encoder is None or reason:
            return _digest(item), reason, None
        return _digest(item), reason, encoder.prepared(item, perturbed.image_ids[row])

    return read_ahead(look, rows)


def _digest(item: Any) -> str:
    picture, overlay = split_overlay(item)
    hasher = hashlib.blake2b(repr(picture.size).encode(), digest_size=16)
    hasher.update(picture.tobytes())
    hasher.update(b"" if overlay is None else overlay.key.encode())
    return hasher.hexdigest()


_WORST = 20  # queries that a condition keeps as the worst hit
RECREATE = "the command of diptych analyse stress once more: what is finished is kept"
_TEXTS = "texts.jsonl.gz"


@dataclass(frozen=True, eq=False)
class Condition(Artifact, kind="condition", version=2, recreate=RECREATE, files=("texts",)):
    """One perturbation with one seed, kept as soon as it is made."""

    perturbation: str
    seed: int
    key: str  # what it was made of, by content
    content: str  # a fingerprint of the changed queries: two seeds with the same are one experiment
    options: Mapping[str, Any]
    reasons: Mapping[str, int]  # how many queries stayed as they were, by reason
    changed: np.ndarray  # (n,) booleans
    same: np.ndarray  # (n,) booleans: changed, and the embedding differs by no more than rounding
    values: Mapping[str, np.ndarray]  # per measure, (n,) float64; of the clean query where it was not changed
    rank: np.ndarray  # (n,) float64, of the best positive
    # (n,) float64: 1 where the own image scores the clean caption higher than the changed one, 0 where lower,
    # one half where they tie; NaN for captions that were not changed, and for images
    preference: np.ndarray
    worst: np.ndarray  # queries whose rank grew by the greatest factor, that first, at most one per image
    worst_first: np.ndarray  # (w, 2): the item that each of them found first, clean and changed
    texts: Mapping[str, str] = field(default_factory=dict)  # of captions, per id the changed text

    def write_files(self, folder: Path) -> None:
        each = ({"id": name, "text": text} for name, text in self.texts.items())
        lines = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in each)
        packed = gzip.compress(lines.encode("utf-8", "backslashreplace"), compresslevel=6, mtime=0)
        write_bytes(folder / _TEXTS, packed)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        return {"texts": {line["id"]: line["text"] for _, line in read_jsonl(folder / _TEXTS)}}


@dataclass(frozen=True, eq=False)
class Clean(Artifact, kind="clean", recreate=RECREATE):
    """Values of the clean queries of both directions."""

    values: Mapping[str, Mapping[str, np.ndarray]]  # per direction and measure, (n,) float64
    cluster: Mapping[str, np.ndarray]  # per direction, (n,) the image that each query belongs to
    queries: Mapping[str, str]  # per direction, a fingerprint of the ids of queries and gallery


@dataclass(frozen=True)
class StressJob(Artifact, kind="conditions", recreate=RECREATE):
    """Marks a folder of conditions; each says itself what it was made of."""


# of changed queries, and by a relevance model that reads them too
Rows = tuple[np.ndarray, np.ndarray | None]


def _measured(
    side: Queries,
    clean: Mapping[str, np.ndarray],
    measures: Sequence[str],
    change: Change,
    rows: np.ndarray,  # (q, d) of changed queries
    relevant: np.ndarray | None,  # (q, e) of those by a relevance model that reads changed queries
    **made_of: Any,
) -> Condition:
    """Rank changed queries against the gallery; all others keep their clean values, bit for bit."""
    places = change.places
    alike = same_rows(rows, side.rows[places])
    same = np.zeros(len(side), dtype=bool)
    same[places[alike]] = True
    rows = np.where(alike[:, None], side.rows[places], rows)
    # The same row ranks the same; only a relevance model may still see another query.
    again = np.ones(len(places), dtype=bool) if relevant is not None else ~alike
    values = {name: given.copy() for name, given in clean.items()}
    if again.any():
        part = None if relevant is None else relevant[again]
        for name, found in side.measured(measures, rows[again], places[again], part).items():
            values[name][places[again]] = found
    rank = values.pop(RANK)
    preference = np.full(len(side), np.nan)
    if side.direction == "t2i" and len(places):
        before, after = (side.own_scores(given, places) for given in (side.rows[places], rows))
        preference[places] = np.where(before == after, 0.5, before > after)
    worst = _worst(clean[RANK], rank, side.cluster)
    among = np.searchsorted(places, worst)  # a query that fell was changed, and places ascend
    first = np.empty((len(worst), 2), dtype=np.int64)
    if len(worst):
        first[:, 0], first[:, 1] = side.best(side.rows[worst]), side.best(rows[among])
    return Condition(
        **made_of,
        content=change.content,
        options=change.options,
        reasons=change.reasons,
        changed=change.changed,
        same=same,
        values=values,
        rank=rank,
        preference=preference,
        worst=worst,
        worst_first=first,
        texts={side.ids[place]: text for place, text in zip(places.tolist(), change.texts, strict=False)},
    )


def _worst(clean: np.ndarray, rank: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Return queries that fell by the greatest factor, at most one of an image; of equal falls the first."""
    fall = rank / clean
    order = np.argsort(-fall, kind="stable")
    order = order[fall[order] > 1]
    _, first = np.unique(cluster[order], return_index=True)
    return np.asarray(order[np.sort(first)][:_WORST])


def conditions_job(folder: Path) -> Job[Condition]:
    return Job(folder / "conditions", StressJob(), Condition, noun="conditions", suffix="")


def open_condition(folder: Path, perturbation: str, seed: int) -> Condition:
    return Condition.open(conditions_job(folder).path(f"{perturbation}-{seed}"))


@dataclass(eq=False)
class Conditions:
    """Makes conditions, or opens those that are there and of the same content."""

    encoder: DualEncoder  # makes embeddings of changed queries
    asking: Collection  # the queries' images and captions
    sides: Mapping[Direction, Queries]  # both directions, clean
    folder: Path  # the stress run's
    seeds: Sequence[int]  # of the draws
    measures: Sequence[str]
    language: Language  # what perturbations look words up in
    compat: str
    options: Mapping[str, Mapping[str, Any]]  # per perturbation
    relevance: DualEncoder | None  # a relevance model that reads changed queries
    content: Mapping[str, Any]  # fingerprints of everything else that a condition depends on

    @cached_property
    def clean(self) -> Clean:
        return Clean(
            {way: side.measured(self.measures) for way, side in self.sides.items()},
            {way: np.asarray(side.cluster, dtype=np.int64) for way, side in self.sides.items()},
            {way: fingerprint(iter(side.ids), iter(side.gallery_ids)) for way, side in self.sides.items()},
        )

    @cached_property
    def _tags(self) -> list[list[str]]:
        return tag_captions(self.asking.captions, self.language.need_tagger("tagging captions"))

    def key(self, perturbation: Perturbation, seed: int) -> str:
        """Return what a condition is made of, by content."""
        options = options_of(perturbation, self.options.get(perturbation.name))
        about: dict[str, Any] = {
            "diptych": __version__,
            "perturbation": perturbation.name,
            "version": perturbation.version,
            "seed": seed,
            "options": options.model_dump(mode="json"),
            "measures": list(self.measures),
            **self.content,
        }
        if isinstance(perturbation, TextPerturbation):
            about["compat"] = self.compat
            if "tags" in perturbation.needs:
                about["tagger"] = self.language.need_tagger(perturbation.name).fingerprint
            if "wordnet" in perturbation.needs:
                about["wordnet"] = self.language.need_wordnet(perturbation.name).fingerprint
        return fingerprint(about)

    def of(self, perturbations: Sequence[Perturbation]) -> list[tuple[Perturbation, list[Condition]]]:
        """Return every perturbation with its conditions, one per seed; what is missing is made."""
        units = {f"{one.name}-{seed}": (one, seed) for one in perturbations for seed in self.seeds}
        keys = {name: self.key(*unit) for name, unit in units.items()}
        job = conditions_job(self.folder)
        job.run(units, self._make, states=keys)
        found = {name: Condition.open(job.path(name), of=fingerprint(key)) for name, key in keys.items()}
        return [(one, [found[f"{one.name}-{seed}"] for seed in self.seeds]) for one in perturbations]

    def _make(self, unit: tuple[Perturbation, int]) -> Condition:
        perturbation, seed = unit
        name, key, job = perturbation.name, self.key(perturbation, seed), conditions_job(self.folder)
        finished = (job.get(f"{name}-{one}", self.key(perturbation, one)) for one in self.seeds)
        before = {one.seed: one for one in finished if one is not None}
        if isinstance(perturbation, TextPerturbation):
            change, rows = self._captions(perturbation, seed, before)
        else:
            assert isinstance(perturbation, PicturePerturbation)
            change, rows = self._pictures(perturbation, seed, before)
        if rows is None:
            return replace(_twins(change, before)[0], seed=seed, key=key, reasons=change.reasons)
        made_of: dict[str, Any] = {"perturbation": name, "seed": seed, "key": key}
        way = perturbation.direction
        return _measured(self.sides[way], self.clean.values[way], self.measures, change, *rows, **made_of)

    def _captions(
        self, perturbation: TextPerturbation, seed: int, before: Mapping[int, Condition]
    ) -> tuple[Change, Rows | None]:
        """Return what was changed, and its embeddings; None where another seed changed the same to the same."""
        ids = self.sides["t2i"].ids
        options = self.options.get(perturbation.name) or {}
        how: dict[str, Any] = {"seed": seed, "compat": self.compat, "language": self.language}
        how["tags"] = self._tags if "tags" in perturbation.needs else None
        change = changed_captions(perturbation, self.asking.captions, ids, options, **how)
        if _twins(change, before):
            return change, None
        names, relevant = [ids[place] for place in change.places.tolist()], None
        rows = encode_captions(self.encoder, change.texts, names, f"{perturbation.name}, seed {seed}")
        if self.relevance is not None:
            relevant = encode_captions(self.relevance, change.texts, names, "relevance model")
        return change, (rows, relevant)

    def _pictures(
        self, perturbation: PicturePerturbation, seed: int, before: Mapping[int, Condition]
    ) -> tuple[Change, Rows | None]:
        options = options_of(perturbation, self.options.get(perturbation.name))
        values, relevant = options.model_dump(mode="json"), None

        def view(drawn: int) -> Collection:
            return perturbed_pictures(self.asking, perturbation, seed=drawn, options=options.model_dump())

        if any(look_alike(view(seed), view(other)) for other in before):
            change, _ = encode_pictures(None, view(seed), values)
            if _twins(change, before):
                return change, None
        change, rows = encode_pictures(self.encoder, view(seed), values, f"{perturbation.name}, seed {seed}")
        if self.relevance is not None:
            _, relevant = encode_pictures(self.relevance, view(seed), values, "relevance model")
        return change, (rows, relevant)


def _twins(change: Change, before: Mapping[int, Condition]) -> list[Condition]:
    return [one for one in before.values() if one.content == change.content]
