"""Conditions: perturbation after perturbation and seed after seed, each kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.perturbations import (
    Perturbation,
    PicturePerturbation,
    TextPerturbation,
)
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.perturbations.pictures import perturbed_pictures
from diptych.core.errors import StorageError
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import Task, report_to, task
from diptych.core.version import __version__
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.data.language.tagged import tag_captions
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.stress.changed import (
    Change,
    Stop,
    changed_captions,
    changed_pictures,
    check_stop,
    encode_captions,
    encode_pictures,
    look_alike,
    same_rows,
)
from diptych.evaluation.stress.condition import Condition
from diptych.evaluation.stress.queries import RANK, Queries
from diptych.metrics import Direction

WORST = 20
"""Queries that a condition keeps as the worst hit."""


def measured(
    side: Queries,
    clean: Mapping[str, np.ndarray],
    measures: Sequence[str],
    change: Change,
    rows: np.ndarray,
    relevant: np.ndarray | None,
    *,
    perturbation: str,
    seed: int,
    key: str,
) -> Condition:
    """Rank changed queries against the gallery; all others keep their clean values, bit for bit.

    Args:
        rows: (q, d) of those.
        relevant: (q, e) of those by a relevance model that reads changed queries; else None.
    """
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
        perturbation=perturbation,
        seed=seed,
        key=key,
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
        worst_texts=[change.texts[place] for place in among.tolist()] if change.texts else (),
    )


def _worst(clean: np.ndarray, rank: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Queries that fell by the greatest factor, at most one of a picture; of equal falls the first."""
    fall = rank / clean
    order = np.argsort(-fall, kind="stable")
    order = order[fall[order] > 1]
    _, first = np.unique(cluster[order], return_index=True)
    found: np.ndarray = order[np.sort(first)][:WORST]
    return found


_FORMAT = 1

Rows = tuple[np.ndarray, np.ndarray | None]
"""Rows of changed queries, and those by a relevance model that reads them too."""


def direction_of(perturbation: Perturbation) -> Direction:
    """Who asks: captions where captions are perturbed, pictures where pictures are."""
    return "t2i" if isinstance(perturbation, TextPerturbation) else "i2t"


@dataclass(eq=False)
class Conditions:
    """Makes conditions, or opens those that are there and of the same content.

    Attributes:
        encoder: makes rows of changed queries.
        asking: the pictures that ask, with their captions.
        sides: both directions, clean.
        folder: where conditions are kept.
        seeds: of the draws.
        measures: names of what is measured.
        language: what perturbations look words up in.
        compat: of the perturbations.
        options: per perturbation, its options.
        relevance: a relevance model that reads changed queries; None where relevance is that of the clean
            query, or there is no such model.
        content: fingerprints of everything else that a condition depends on.
        should_stop: asked between batches.
    """

    encoder: DualEncoder
    asking: Collection
    sides: Mapping[Direction, Queries]
    folder: Path
    seeds: Sequence[int]
    measures: Sequence[str]
    language: Language
    compat: str
    options: Mapping[str, Mapping[str, Any]]
    relevance: DualEncoder | None
    content: Mapping[str, Any]
    should_stop: Stop

    @cached_property
    def clean(self) -> dict[Direction, dict[str, np.ndarray]]:
        """Values of the clean queries."""
        return {direction: side.measured(self.measures) for direction, side in self.sides.items()}

    @cached_property
    def _tags(self) -> list[list[str]]:
        return tag_captions(self.asking.captions, self.language.need_tagger("tagging captions"))

    def key(self, perturbation: Perturbation, seed: int) -> str:
        """What a condition is made of, by content."""
        options = options_of(perturbation, self.options.get(perturbation.name))
        about: dict[str, Any] = {
            "format": _FORMAT,
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

    def of(self, perturbations: Sequence[Perturbation]) -> Iterator[tuple[Perturbation, list[Condition]]]:
        """Every perturbation with its conditions, one per seed; what is missing is made."""
        for direction, some in groupby(perturbations, key=direction_of):
            yield from self._of_one_side(list(some), direction)

    def _of_one_side(
        self, perturbations: Sequence[Perturbation], direction: Direction
    ) -> Iterator[tuple[Perturbation, list[Condition]]]:
        """Those of one direction, whose queries take about the same time each."""
        there = {one.name: self._finished(one) for one in perturbations}
        size, unit = len(self.sides[direction]), "captions" if direction == "t2i" else "pictures"
        total = size * len(self.seeds) * len(perturbations)
        done = size * sum(len(found) for found in there.values())
        with task(f"asking perturbed {unit}", total, unit, done) as bar:
            for perturbation in perturbations:
                found = there[perturbation.name]
                for seed in self.seeds:
                    if seed not in found:
                        check_stop(self.should_stop)
                        found[seed] = self._make(perturbation, seed, found, bar)
                yield perturbation, [found[seed] for seed in self.seeds]

    def _finished(self, perturbation: Perturbation) -> dict[int, Condition]:
        found = {}
        for seed in self.seeds:
            try:
                one = Condition.open(self.folder, perturbation.name, seed)
            except StorageError:
                continue  # missing or damaged: made again
            texts = Condition.texts_path(self.folder, perturbation.name, seed)
            if direction_of(perturbation) == "t2i" and not texts.is_file():
                continue
            if one.key == self.key(perturbation, seed):
                found[seed] = one
        return found

    def _make(
        self, perturbation: Perturbation, seed: int, before: Mapping[int, Condition], bar: Task
    ) -> Condition:
        direction = direction_of(perturbation)
        side, key, counted = self.sides[direction], self.key(perturbation, seed), _Counted(bar)
        with report_to(None):
            if isinstance(perturbation, TextPerturbation):
                change, rows = self._captions(perturbation, seed, before, counted)
            else:
                assert isinstance(perturbation, PicturePerturbation)
                change, rows = self._pictures(perturbation, seed, before, counted)
            if rows is None:
                twin = _twin(change, before)
                assert twin is not None
                made = replace(twin, seed=seed, key=key, reasons=change.reasons)
            else:
                said: dict[str, Any] = {"perturbation": perturbation.name, "seed": seed, "key": key}
                made = measured(side, self.clean[direction], self.measures, change, *rows, **said)
        texts = None
        if direction == "t2i":
            places = change.places.tolist()
            texts = {side.ids[place]: text for place, text in zip(places, change.texts, strict=True)}
        made.save(self.folder, texts)
        bar.advance(len(side) - counted.done, perturbation.name)
        return made

    def _captions(
        self, perturbation: TextPerturbation, seed: int, before: Mapping[int, Condition], bar: Task
    ) -> tuple[Change, Rows | None]:
        """What was changed, and its rows; none where another seed changed the same to the same."""
        ids = self.sides["t2i"].ids
        change = changed_captions(
            perturbation,
            self.asking.captions,
            ids,
            seed=seed,
            options=self.options.get(perturbation.name) or {},
            compat=self.compat,
            language=self.language,
            tags=self._tags if "tags" in perturbation.needs else None,
        )
        if _twin(change, before) is not None:
            return change, None
        names = [ids[place] for place in change.places.tolist()]
        rows = encode_captions(self.encoder, change.texts, names, bar, self.should_stop)
        if self.relevance is None:
            return change, (rows, None)
        return change, (
            rows,
            encode_captions(self.relevance, change.texts, names, _Counted(None), self.should_stop),
        )

    def _pictures(
        self, perturbation: PicturePerturbation, seed: int, before: Mapping[int, Condition], bar: Task
    ) -> tuple[Change, Rows | None]:
        """The same of pictures."""
        options = options_of(perturbation, self.options.get(perturbation.name))
        said = options.model_dump(mode="json")

        def view(drawn: int) -> Collection:
            return perturbed_pictures(self.asking, perturbation, seed=drawn, options=options.model_dump())

        if any(look_alike(view(seed), view(other)) for other in before):
            change = changed_pictures(view(seed), said)
            if _twin(change, before) is not None:
                return change, None
        change, rows = encode_pictures(self.encoder, view(seed), said, bar, self.should_stop)
        if self.relevance is None:
            return change, (rows, None)
        _, relevant = encode_pictures(self.relevance, view(seed), said, _Counted(None), self.should_stop)
        return change, (rows, relevant)


class _Counted:
    """A task that knows how far it was advanced; without a bar, one that nobody sees."""

    def __init__(self, bar: Task | None) -> None:
        self._bar, self.done = bar, 0

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.done += steps
        if self._bar is not None:
            self._bar.advance(steps, note)


def _twin(change: Change, before: Mapping[int, Condition]) -> Condition | None:
    """The condition of another seed that changed the same queries to the same."""
    return next((one for one in before.values() if one.content == change.content), None)
