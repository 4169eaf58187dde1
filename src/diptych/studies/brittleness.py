"""Measuring captions and what changes of them cost: thesis chapter 5, tables 5.1 to 5.4.

A row's folder has ``embeddings/NAME-SPLIT``, shared by all studies, the same by the relevance model in ``relevance/``,
values per caption or query in ``granularity/`` and ``clean/``, and a run of ``diptych analyse stress`` in ``stress/``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from diptych.analysis.granularity.features import choose_features
from diptych.analysis.granularity.measure import check_language, granularity
from diptych.analysis.perturbations import PERTURBATIONS, choose_perturbations
from diptych.analysis.perturbations.perturb import PUBLISHED_SEED
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.language.open import LanguageSpec
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.evaluation.stress.conditions import Clean as CleanQueries
from diptych.evaluation.stress.conditions import open_condition
from diptych.evaluation.stress.queries import RSUM, Part, part_of, queries_of
from diptych.evaluation.stress.result import CLEAN, StressResult
from diptych.evaluation.stress.stress import DEFAULT_SEEDS, stress
from diptych.studies.claims import FINER
from diptych.studies.evidence import KEPT, Kept
from diptych.studies.plan import MEASURE
from diptych.studies.published import document
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.retrieval import RECALLS
from diptych.studies.sources import Subject, encoder_of
from diptych.studies.study import PUBLISHED

_LISTS = document("brittleness")["lists"]
_GALLERIES = {"split": "split", "folder": "all"}  # as the suite calls them
_SEARCHED = {"coco": 40_504, "flickr30k": 31_783}  # images in the folders that the published runs searched
_WHOLE = "full, text queries among all pictures of the folder"


class MeasureOptions(LanguageSpec):
    """Options of measuring (``--set measure.KEY=VALUE``)."""

    split: str = "test"
    gallery: Literal["split", "folder"] = "split"  # folder: captions search all images of the folder
    relevance: str | None = None  # whose similarity is the gain of DCG_CM; none: the evaluated model's own
    compat: Literal["none", "published"] = "none"
    seeds: int | None = Field(None, ge=1, strict=True)

    @field_validator("relevance")
    @classmethod
    def _none(cls, value: str | None) -> str | None:
        return None if value in ("", "none") else value

    def folder_name(self, collection: Collection) -> str:
        return safe_name(f"{collection.name}-{self.split}-{self.gallery}".removesuffix("-split"))

    def searched(self, collection: Collection) -> Collection:
        """Return the collection, or the split that is evaluated with everything in its folder."""
        if self.gallery == "split":
            return collection
        whole = collection.split(self.split).with_whole_folder()
        if whole is None:
            raise UsageError(
                f"the images of {collection.name} are not all files of a folder: there is none to search",
                "take the gallery of the split: --set measure.gallery=split",
            )
        return whole

    def part(self, collection: Collection) -> Part:
        """Return what is encoded, and what of it are queries."""
        return part_of(self.searched(collection), self.split, _GALLERIES[self.gallery])

    def on(self, part: Part, perturbed: bool) -> Measured:
        """Return what a part's numbers are measured on."""
        queries, searched, protocol = part.asking, part.encoded.n_images, "full"
        if self.gallery == "folder":
            as_printed = _SEARCHED.get(queries.name.lower().removesuffix(FINER), searched) == searched
            protocol = _WHOLE if as_printed else f"{_WHOLE}, of which there are {searched:,}"
        if perturbed and self.compat == "none":
            protocol += ", captions perturbed with compat none"
        counts = queries.n_images, queries.n_captions
        return Measured(queries.name, self.split, *counts, protocol, centric=queries.centric or "")


@dataclass(frozen=True)
class Granularity(Measuring):
    """Table 5.1, a feature per column: its mean over captions, and as published where that is defined otherwise."""

    @property
    def about(self) -> dict[str, Any]:
        compats = ("none", "published")
        definitions = {one.name: [one.definition(compat) for compat in compats] for one in choose_features()}
        return {**super().about, "definitions": definitions}

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        chosen = MeasureOptions.read(measuring, MEASURE)
        for collection in collections.values():
            check_language(choose_features(), chosen.open(collection.split(chosen.split)))

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        chosen = MeasureOptions.read(subject.measuring, MEASURE)
        part = subject.collection.split(chosen.split)
        kept = "granularity/" + safe_name(f"{part.name}-{chosen.split}")
        folder = subject.run.folder / kept
        options: dict[str, Any] = {"language": chosen.open(part), "split": chosen.split}
        right = granularity(part, folder=folder, **options)
        published = granularity(part, compat="published", **options)
        columns = {one.name: right.column(one.name) for one in right.features}
        queries = {name: one[~np.isnan(one)] for name, one in columns.items()}  # not of every caption
        images = {name: right.caption_image[~np.isnan(column)] for name, column in columns.items()}
        Kept(queries, images).save(folder / KEPT)
        means = {one.name: one.mean for one in right.features}
        means |= {one.name + PUBLISHED: one.mean for one in published.features if one.compat == "published"}
        values = {name: mean for name, mean in means.items() if mean is not None}
        counts = right.about["images"], right.n_captions
        on = Measured(part.name, chosen.split, *counts, centric=part.centric or "")
        return (Measurement(values, on, right.line(), kept=kept),)


class _OfEncoders(Measuring):
    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        chosen = MeasureOptions.read(measuring, MEASURE)
        for collection in collections.values():
            chosen.part(collection)
            chosen.open(collection)
        if chosen.relevance is not None:
            DualEncoder.load(chosen.relevance, device="cpu")


_GAIN, _GAIN_PRINTED = "DCG_CM@10", "DCG_CM-published@10"
_ROTATED = {"R@1": "R-cap@5", "R@5": "R-cap@10", "R@10": "R-cap@1"}  # column from images → what stands in it


@dataclass(frozen=True)
class Clean(_OfEncoders):
    """Table 5.2: recalls, their sums and DCG_CM in both directions."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        chosen, folder = MeasureOptions.read(subject.measuring, MEASURE), subject.run.folder
        part, name = chosen.part(subject.collection), chosen.folder_name(subject.collection)

        def encode(encoder: DualEncoder, parent: str) -> EncodedCollection:
            return encode_collection(encoder, part.encoded, folder / parent / name, chosen.split)

        kept, encoded, relevant = f"clean/{name}", encode(encoder_of(subject.run), "embeddings"), None
        if chosen.relevance is not None:
            relevant = encode(DualEncoder.load(chosen.relevance), "relevance")
        measures = [*RECALLS, RSUM, *([_GAIN] if encoded.similarity == "cosine" else [])]
        queries, published = dict[str, np.ndarray](), dict[str, float]()
        sides = queries_of(part, encoded, relevant)
        for direction, side in sides.items():
            found = replace(side, relevance=None).measured([*measures, *_ROTATED.values()])
            each = {measure: (100 if measure[0] == "R" else 1) * values for measure, values in found.items()}
            queries |= {f"{direction} {measure}": each[measure] for measure in measures}
            if side.relevance is not None:
                gains = side.measured([_GAIN_PRINTED])[_GAIN_PRINTED]
                published[f"{direction} {_GAIN}"] = float(np.mean(gains))
            if direction == "i2t" and chosen.compat == "published":
                rotated = {recall: float(np.mean(each[printed])) for recall, printed in _ROTATED.items()}
                rotated[RSUM] = sum(rotated.values())
                published |= {f"i2t {measure}": mean for measure, mean in rotated.items()}
        Kept(queries, {way: side.cluster for way, side in sides.items()}).save(folder / kept / KEPT)
        values = {column: float(np.mean(each)) for column, each in queries.items()}
        values |= {f"{column}{PUBLISHED}": value for column, value in published.items()}
        on = chosen.on(part, perturbed=False)
        line = f"{part.asking.describe()}; {on.protocol}; from text {len(encoded.images):,} pictures; "
        line += "R@k any of the positives, DCG_CM by the evaluated model and clamped to [0, 1]"
        if chosen.compat == "published":
            line += "; as published: captions found among the first k over min(k, 5), columns rotated"
        if relevant is not None:
            line += f"; DCG_CM as published, by {relevant.images.encoder}"
        return (Measurement(values, on, line, kept=kept),)


@dataclass(frozen=True)
class Suite(_OfEncoders):
    """Tables 5.3 and 5.4: the thirteen perturbations, run once for both."""

    table: str

    @property
    def about(self) -> dict[str, Any]:
        versions = {name: PERTURBATIONS.get(name).version for name in _LISTS["perturbations"]}
        return {**super().about, "format": StressResult.FORMAT, "perturbations": versions}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        chosen, folder = MeasureOptions.read(subject.measuring, MEASURE), subject.run.folder
        name = chosen.folder_name(subject.collection)
        changed = chosen.model_dump(mode="json", exclude_defaults=True)
        kept = f"stress/{name}"
        if changed.keys() - {"split", "gallery"}:  # which the name has already
            kept += f"-{fingerprint(changed)[:8]}"
        seeds: Sequence[int] = (PUBLISHED_SEED,) if chosen.compat == "published" else DEFAULT_SEEDS
        if chosen.seeds is not None:
            seeds = tuple(range(chosen.seeds))
        result = stress(
            encoder_of(subject.run),
            chosen.searched(subject.collection),
            folder / kept,
            perturbations=choose_perturbations(["thesis"]),
            seeds=seeds,
            split=chosen.split,
            language=chosen.open(subject.collection),
            compat=chosen.compat,
            gallery=_GALLERIES[chosen.gallery],
            measures=(RSUM,),
            embeddings=folder / "embeddings" / name,
        )
        clean = CleanQueries.open(folder / kept / CLEAN)
        queries = {"none": clean.values["t2i"][RSUM]}
        for row in result.rows:
            conditions = [open_condition(folder / kept, row.name, seed) for seed in seeds]
            queries[row.name] = np.mean([one.values[RSUM] for one in conditions], axis=0)
        for kind in _LISTS["means"]:
            members = [name for name in _LISTS["perturbations"] if PERTURBATIONS.get(name).group == kind]
            if queries.keys() >= set(members):
                queries[kind] = np.mean([queries[name] for name in members], axis=0)
        Kept(queries, clean.cluster["t2i"]).save(folder / kept / KEPT)
        if self.table == "rsum":  # with captions that change and queries that move, in per cent
            values = {name: float(np.mean(each)) for name, each in queries.items()}
            for row in result.rows:
                values[f"{row.name} changed"] = 100 * row.changed_share
                values[f"{row.name} moved"] = 100 * (1 - row.sizes["unchanged"])
        else:
            agreement = result.agreement.get("t2i")  # none of fewer than two perturbations
            shares = {group: getattr(agreement, group, None) for group in _LISTS["groups"]}
            values = {group: share for group, share in shares.items() if share is not None}
        left_out = "; ".join(f"left out {one}: {why}" for one, why in result.left_out.items())
        line = "; ".join(text for text in (result.protocol_line(), result.method, left_out) if text)
        on = chosen.on(chosen.part(subject.collection), perturbed=True)
        return (Measurement(values, on, line, kept=kept),)
