"""Measuring captions and what changes of them cost: thesis chapter 5, tables 5.1 to 5.4.

Embeddings are in the row's folder and shared by all studies, the suite's run by tables 5.3 and 5.4::

    rows/ROW/seed-N/
      embeddings/NAME-SPLIT/     images and captions; relevance/… the same by the relevance model
      clean/NAME-SPLIT/          values per query of both directions
      stress/NAME-SPLIT/         a folder of diptych analyse stress, and values per query
      granularity/NAME-SPLIT/    of captions alone
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.data.images import FolderSource
from diptych.data.language.open import LanguageSpec
from diptych.studies.claims import FINER
from diptych.studies.evidence import keep
from diptych.studies.published import document
from diptych.studies.results import Measurement, Measuring
from diptych.studies.retrieval import RECALLS
from diptych.studies.sources import Subject, encoder_of, load_encoder
from diptych.studies.study import PUBLISHED
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.evaluation.stress import StressResult
    from diptych.evaluation.stress.queries import Part

_LISTS = document("brittleness")["lists"]
_SEARCHED = {"coco": 40_504, "flickr30k": 31_783}  # images in the folders that the published runs searched
_WHOLE = "full, text queries among all pictures of the folder"


class Chosen(LanguageSpec):
    """What a user chose about measuring (``--set measure.KEY=VALUE``)."""

    split: str = "test"
    gallery: Literal["split", "folder"] = "split"  # folder: captions ask for all images of the folder
    relevance: str | None = None  # whose similarity is the gain of DCG_CM; none: the evaluated model's own
    compat: Literal["none", "published"] = "none"
    seeds: int | None = Field(None, ge=1, strict=True)

    @field_validator("relevance")
    @classmethod
    def _none(cls, value: str | None) -> str | None:
        return None if value in ("", "none") else value

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds of perturbations."""
        from diptych.analysis.perturbations.perturb import PUBLISHED_SEED
        from diptych.evaluation.stress import DEFAULT_SEEDS

        if self.seeds is not None:
            return tuple(range(self.seeds))
        return (PUBLISHED_SEED,) if self.compat == "published" else DEFAULT_SEEDS

    @property
    def asked(self) -> str:
        """The images that captions ask for, as the suite calls them."""
        return "split" if self.gallery == "split" else "all"

    @property
    def mark(self) -> str:
        """What a run of the suite is called besides: a fingerprint of what was chosen."""
        own = self.model_dump(mode="json", exclude_defaults=True)
        return f"-{fingerprint(own)[:8]}" if own.keys() - {"split", "gallery"} else ""

    def place(self, collection: Collection) -> str:
        """Return what a collection's embeddings are called."""
        gallery = "" if self.gallery == "split" else f"-{self.gallery}"
        return safe_name(f"{collection.name}-{self.split}{gallery}")

    def searched(self, collection: Collection) -> Collection:
        """Return the collection, or the split that asks with everything in its folder."""
        return collection if self.gallery == "split" else with_whole_folder(collection.split(self.split))

    def part(self, collection: Collection) -> Part:
        """Return what is encoded, and who asks."""
        from diptych.evaluation.stress.queries import part_of

        return part_of(self.searched(collection), self.split, self.asked)

    def on(self, part: Part, perturbed: bool) -> Measured:
        """Return what a part's numbers are of."""
        asking, there, how = part.asking, part.encoded.n_images, "full"
        if self.gallery == "folder":
            as_printed = _SEARCHED.get(asking.name.lower().removesuffix(FINER), there) == there
            how = _WHOLE if as_printed else f"{_WHOLE}, of which there are {there:,}"
        if perturbed and self.compat == "none":
            how += ", captions perturbed with compat none"
        counts = asking.n_images, asking.n_captions
        return Measured(asking.name, self.split, *counts, how, centric=asking.centric or "")


def with_whole_folder(part: Collection) -> Collection:
    """Return images and captions of a part, then all other ``.jpg`` files of the same folders, without captions."""
    source = part.source
    if not isinstance(source, FolderSource) or not part.pictured.all():
        raise UsageError(
            f"the images of {part.name} are not all files of a folder: there is none to search",
            "take the gallery of the split: --set measure.gallery=split",
        )
    names = [source.names[row] for row in part.source_rows.tolist()]
    folders = {Path(name).parent for name in names}
    files = {folder / one.name for folder in folders for one in (source.root / folder).glob("*.[jJ][pP][gG]")}
    beside = sorted(map(str, files - {Path(name) for name in names}))
    return replace(
        part,
        image_ids=[*part.image_ids, *beside],
        splits=[*part.splits, *(["beside"] * len(beside))],
        source=FolderSource(source.root, [*names, *beside]),
        source_rows=np.arange(len(names) + len(beside), dtype=np.int64),
        records=None if part.records is None else [*part.records, *({} for _ in beside)],
        notes=(*part.notes, f"{len(beside):,} more pictures of its folder are searched"),
    )


# Measuring -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Granularity(Measuring):
    """Table 5.1, a feature per column: its mean over captions, and as published where that is defined otherwise."""

    @property
    def about(self) -> dict[str, Any]:
        """With definitions."""
        from diptych.analysis.granularity import choose_features

        ways = ("none", "published")
        definitions = {one.name: [one.definition(compat) for compat in ways] for one in choose_features()}
        return {**super().about, "definitions": definitions}

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        """See that every collection has the split, and a language to measure it with."""
        from diptych.analysis.granularity import check_language, choose_features

        chosen = Chosen.read(measuring, "measure")
        for collection in collections.values():
            check_language(choose_features(), chosen.open(collection.split(chosen.split)))

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure; values of every caption are kept in the row's folder."""
        from diptych.analysis.granularity import granularity

        chosen = Chosen.read(subject.measuring, "measure")
        part = subject.collection.split(chosen.split)
        kept = "granularity/" + safe_name(f"{part.name}-{chosen.split}")
        folder = subject.run.folder / kept
        how: dict[str, Any] = {"language": chosen.open(part), "split": chosen.split}
        right = granularity(part, folder=folder, **how)
        published = granularity(part, compat="published", **how)
        each = {one.name: right.column(one.name) for one in right.features}
        known = {name: ~np.isnan(column) for name, column in each.items()}  # not every caption has a value
        of = {name: right.caption_image[there] for name, there in known.items()}
        keep(folder, {name: column[known[name]] for name, column in each.items()}, of)
        values = {one.name: one.mean for one in right.features}
        others = [one for one in published.features if one.compat == "published"]
        values |= {f"{one.name}{PUBLISHED}": one.mean for one in others}
        on = Measured(
            part.name, chosen.split, right.about["images"], right.n_captions, centric=part.centric or ""
        )
        return (Measurement(_known(values), on, right.line(), kept=kept),)


class _OfEncoders(Measuring):
    """What is measured of encoders."""

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        """See that what was chosen is possible on every collection."""
        chosen = Chosen.read(measuring, "measure")
        for collection in collections.values():
            chosen.part(collection)
            chosen.open(collection)
        if chosen.relevance is not None:
            load_encoder(chosen.relevance, "cpu")


_GAIN, _GAIN_PRINTED = "DCG_CM@10", "DCG_CM-published@10"
_ROTATED = {"R@1": "R-cap@5", "R@5": "R-cap@10", "R@10": "R-cap@1"}
"""Columns of table 5.2 from images, and what stands in them."""


@dataclass(frozen=True)
class Clean(_OfEncoders):
    """Table 5.2: recalls, their sums and DCG_CM in both directions."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; embeddings, and what every query has, are kept in the row's folder."""
        from diptych.encoders.encode import encode_collection
        from diptych.evaluation.stress.queries import RSUM, queries_of

        chosen, folder = Chosen.read(subject.measuring, "measure"), subject.run.folder
        part, place = chosen.part(subject.collection), chosen.place(subject.collection)
        encoded = encode_collection(
            encoder_of(subject.run), part.encoded, folder / "embeddings" / place, chosen.split
        )
        relevant = None
        if chosen.relevance is not None:
            model, there = load_encoder(chosen.relevance), folder / "relevance" / place
            relevant = encode_collection(model, part.encoded, there, chosen.split)
        names = [*RECALLS, RSUM, *([_GAIN] if encoded.similarity == "cosine" else [])]
        queries, printed = dict[str, np.ndarray](), dict[str, float]()
        sides = queries_of(part, encoded, relevant)
        for way, side in sides.items():
            found = replace(side, relevance=None).measured([*names, *_ROTATED.values()])
            each = {name: (100 if name.startswith("R") else 1) * of for name, of in found.items()}
            queries |= {f"{way} {name}": each[name] for name in names}
            if side.relevance is not None:
                printed[f"{way} {_GAIN}"] = float(np.mean(side.measured([_GAIN_PRINTED])[_GAIN_PRINTED]))
            if way == "i2t" and chosen.compat == "published":
                printed |= {f"{way} {name}": float(np.mean(each[of])) for name, of in _ROTATED.items()}
                printed[f"{way} rsum"] = sum(printed[f"{way} {name}"] for name in _ROTATED)
        kept = f"clean/{place}"
        keep(folder / kept, queries, {way: side.cluster for way, side in sides.items()})
        values = {name: float(np.mean(of)) for name, of in queries.items()}
        on, line = chosen.on(part, perturbed=False), part.asking.describe()
        line += f"; {on.protocol}; from text {len(encoded.images):,} pictures; R@k any of the positives, "
        line += "DCG_CM by the evaluated model and clamped to [0, 1]"
        if chosen.compat == "published":
            line += "; as published: captions found among the first k over min(k, 5), columns rotated"
        if relevant is not None:
            line += f"; DCG_CM as published, by {relevant.images.encoder}"
        values |= {f"{name}{PUBLISHED}": value for name, value in printed.items()}
        return (Measurement(values, on, line, kept=kept),)


@dataclass(frozen=True)
class Suite(_OfEncoders):
    """Tables 5.3 and 5.4: the thirteen perturbations, run once for both."""

    table: str

    @property
    def about(self) -> dict[str, Any]:
        """With versions of what is run."""
        from diptych.analysis.perturbations import PERTURBATIONS
        from diptych.evaluation.stress import StressResult

        versions = {name: PERTURBATIONS.get(name).version for name in _LISTS["perturbations"]}
        return {**super().about, "format": StressResult.FORMAT, "perturbations": versions}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Run the suite, or find it there; the sum of recalls of every query is kept in its folder."""
        from diptych.analysis.perturbations import choose_perturbations
        from diptych.encoders.embeddings import EncodedCollection
        from diptych.evaluation.stress import open_condition, stress
        from diptych.evaluation.stress.queries import RSUM, queries_of

        chosen, folder = Chosen.read(subject.measuring, "measure"), subject.run.folder
        place = chosen.place(subject.collection)
        kept, embeddings = f"stress/{place}{chosen.mark}", folder / "embeddings" / place
        result = stress(
            encoder_of(subject.run),
            chosen.searched(subject.collection),
            folder / kept,
            perturbations=choose_perturbations(["thesis"]),
            seeds=chosen.drawn,
            split=chosen.split,
            language=chosen.open(subject.collection),
            compat=chosen.compat,
            gallery=chosen.asked,
            measures=(RSUM,),
            embeddings=embeddings,
        )
        part = chosen.part(subject.collection)
        side = queries_of(part, EncodedCollection.open(embeddings))["t2i"]
        queries = {"none": side.measured([RSUM])[RSUM]}
        for row in result.rows:
            draws = [open_condition(folder / kept, row.name, seed).values[RSUM] for seed in chosen.drawn]
            queries[row.name] = np.mean(draws, axis=0)
        keep(folder / kept, _with_means(queries), side.cluster)
        groups = {name: getattr(result.agreement.get("t2i"), name, None) for name in _LISTS["groups"]}
        values = (
            _sums(result) if self.table == "rsum" else _known(groups)
        )  # none of fewer than two perturbations
        left_out = "; ".join(f"left out {one}: {why}" for one, why in result.left_out.items())
        line = "; ".join(text for text in (result.protocol_line(), result.method, left_out) if text)
        return (Measurement(values, chosen.on(part, perturbed=True), line, kept=kept),)


def _sums(result: StressResult) -> dict[str, float]:
    """Return sums of recalls, means of kinds among them, and in per cent which captions change and queries move."""
    from diptych.evaluation.stress.queries import RSUM

    values = {"none": result.clean["t2i"][RSUM]}
    for row in result.rows:
        values[row.name] = row.drop(RSUM).perturbed
        values[f"{row.name} changed"] = 100 * row.changed_share
        values[f"{row.name} moved"] = 100 * (row.sizes["decreased"] + row.sizes["increased"])
    return _with_means(values)


def _with_means(values: dict[str, Any]) -> dict[str, Any]:
    """Return numbers of perturbations, or values per query, with the means of kinds."""
    from diptych.analysis.perturbations import PERTURBATIONS

    for kind in _LISTS["means"]:
        members = [name for name in _LISTS["perturbations"] if PERTURBATIONS.get(name).group == kind]
        if values.keys() >= set(members):
            values[kind] = sum(values[name] for name in members) / len(members)
    return values


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
