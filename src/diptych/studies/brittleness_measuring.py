"""Measuring chapter 5's tables: a clean evaluation with both ways of counting, and the suite of perturbations.

Embeddings are in the row's folder and shared by all three studies, the suite's run by tables 5.3 and 5.4::

    rows/ROW/seed-N/
      embeddings/NAME-SPLIT/     pictures and captions
      relevance/NAME-SPLIT/      the same by the relevance model
      stress/NAME-SPLIT/         a folder of diptych analyse stress, and per_query.npz
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.studies.brittleness_rows import FINER, GROUPS, NONE, THIRTEEN
from diptych.studies.given import encoder_of
from diptych.studies.results import keep
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.data.language import Language
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation.stress import StressResult
    from diptych.evaluation.stress.queries import Part


FOLDER = "folder"
_GALLERIES = ("split", FOLDER)
_COMPATS = ("none", "published")
_FULL = "full"
_WHOLE = "full, text queries among all pictures of the folder"

_SEARCHED = {"coco": 40_504, "flickr30k": 31_783}
"""Pictures in the folders that the published runs searched."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen."""

    split: str = "test"
    gallery: str = "split"
    relevance: str | None = None
    compat: str = "none"
    seeds: int | None = None
    language: str = "auto"
    wordnet: str | None = None
    nltk_data: str | None = None

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds by number."""
        from diptych.analysis.perturbations.perturb import PUBLISHED_SEED
        from diptych.evaluation.stress import DEFAULT_SEEDS

        if self.seeds is not None:
            return tuple(range(self.seeds))
        return (PUBLISHED_SEED,) if self.compat == "published" else DEFAULT_SEEDS

    @property
    def place(self) -> str:
        """What is part of the names of embeddings: the split, and the gallery where it is another."""
        return self.split if self.gallery == "split" else f"{self.split}-{self.gallery}"

    @property
    def mark(self) -> str:
        """What is part of the name of a stress run: a fingerprint of what was chosen, beyond the usual."""
        own = {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}
        return f"-{fingerprint(own)[:8]}" if own.keys() - {"split", "gallery"} else ""

    def protocol(self, part: Part, perturbed: bool) -> str:
        """How a part was measured, as :class:`~diptych.studies.verdict.Measured` says it."""
        how = _FULL
        if self.gallery == FOLDER:
            pictures = part.encoded.n_images
            as_printed = _SEARCHED.get(part.asking.name.lower().removesuffix(FINER), pictures) == pictures
            how = _WHOLE if as_printed else f"{_WHOLE}, of which there are {pictures:,}"
        return f"{how}, captions perturbed with compat none" if perturbed and self.compat == "none" else how

    def part(self, collection: Collection) -> Part:
        """What is encoded, and who asks."""
        from diptych.evaluation.stress.queries import part_of

        return part_of(self.searched(collection), self.split, "split" if self.gallery == "split" else "all")

    def searched(self, collection: Collection) -> Collection:
        """The collection, or the part that asks with everything in its folder."""
        return collection if self.gallery == "split" else with_whole_folder(collection.split(self.split))

    def opened_language(self, collection: Collection) -> Language:
        """What tags captions and knows synonyms."""
        from diptych.data.language.open import open_language

        return open_language(
            self.language, wordnet=self.wordnet, nltk_data=self.nltk_data, collection=collection
        )

    def relevance_model(self, device: str | None = None) -> DualEncoder | None:
        """The model whose similarity is the gain of DCG_CM; None for the evaluated one."""
        from diptych.encoders.dual_encoder import DualEncoder

        if self.relevance is None:
            return None
        best = Path(self.relevance).expanduser() / "best"
        return DualEncoder.load(best if (best / "diptych.json").is_file() else self.relevance, device=device)


MEASURED_BY = tuple(one.name for one in fields(Chosen))
PATHS = ("measure.relevance", "measure.wordnet", "measure.nltk_data")
"""Keys whose values can be files or folders."""


def chosen_of(values: Mapping[str, Any]) -> Chosen:
    """The choices that were made, checked."""
    from diptych.data.language.open import LANGUAGES

    given = dict(values)
    if given.get("relevance") in ("", "none"):
        del given["relevance"]
    chosen = Chosen(**given)
    for key, known in (("gallery", _GALLERIES), ("compat", _COMPATS)):
        if getattr(chosen, key) not in known:
            raise UsageError(f"measure.{key} is {getattr(chosen, key)!r}", f"give one of {', '.join(known)}")
    if chosen.language not in LANGUAGES:
        raise UnknownNameError("language", chosen.language, LANGUAGES)
    seeds = chosen.seeds
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UsageError(f"measure.seeds is {seeds!r}", "give how many, from 1: measure.seeds=3")
    for key in ("split", "relevance", "wordnet", "nltk_data"):
        value = getattr(chosen, key)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"measure.{key} is {value!r}", f"--set measure.{key}=NAME")
    return chosen


def check_chosen(values: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
    """See that the choices are possible on every collection, before anything is made."""
    chosen = chosen_of(values)
    for name, collection in collections.items():
        if not collection.split_sizes.get(chosen.split):
            raise UnknownNameError(f"split of {name}", chosen.split, collection.split_sizes)
        chosen.searched(collection)
        chosen.opened_language(collection)
    chosen.relevance_model("cpu")


_RECALLS = ("R@1", "R@5", "R@10")
_GAIN = "DCG_CM@10"
_ROTATED = {"R@1": "R@5", "R@5": "R@10", "R@10": "R@1"}
"""Columns of Table 5.2 from pictures, and what stands in them."""


def _on(part: Part, chosen: Chosen, perturbed: bool) -> Measured:
    asking = part.asking
    return Measured(
        asking.name,
        chosen.split,
        asking.n_images,
        asking.n_captions,
        protocol=chosen.protocol(part, perturbed),
        centric=asking.centric or "",
    )


@dataclass(frozen=True)
class Clean:
    """Table 5.2: recalls, their sums and DCG_CM in both directions."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the encoder and the person's choices."""
        return {"kind": "brittleness, clean"}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; embeddings are kept in the row's folder."""
        from diptych.encoders.encode import encode_collection
        from diptych.evaluation.evaluate import measure_queries
        from diptych.evaluation.stress.queries import queries_of

        chosen, folder = chosen_of(subject.measuring), subject.run.folder
        part = chosen.part(subject.collection)
        name = safe_name(f"{subject.collection.name}-{chosen.place}")
        encoder, relevance = encoder_of(subject.run), chosen.relevance_model()
        how: dict[str, Any] = {"split": chosen.split}
        encoded = encode_collection(encoder, part.encoded, folder / "embeddings" / name, **how)
        relevant = None
        if relevance is not None:
            relevant = encode_collection(relevance, part.encoded, folder / "relevance" / name, **how)
        as_published = chosen.compat == "published"
        values: dict[str, float] = {}
        for way, side in queries_of(part, encoded, relevant).items():
            own = [*_RECALLS, *([_GAIN] if encoded.similarity == "cosine" else [])]
            wanted = own + [f"R-cap@{name.removeprefix('R@')}" for name in _RECALLS]
            scored: dict[str, Any] = {"similarity": side.similarity, "query_side": way}
            rows = (side.rows, side.gallery, side.positives)
            found = {
                key: float(np.mean(one)) for key, one in measure_queries(*rows, wanted, **scored).items()
            }
            values |= {f"{way} {key}": 100 * found[key] for key in _RECALLS}
            values[f"{way} rsum"] = sum(values[f"{way} {key}"] for key in _RECALLS)
            if _GAIN in found:
                values[f"{way} {_GAIN}"] = found[_GAIN]
            if side.relevance is not None:
                by_other = measure_queries(*rows, ["DCG_CM-published@10"], relevance=side.relevance, **scored)
                values[f"{way} {_GAIN}{PUBLISHED}"] = float(np.mean(by_other["DCG_CM-published@10"]))
            if way == "i2t" and as_published:
                capped = {key: 100 * found[f"R-cap@{key.removeprefix('R@')}"] for key in _RECALLS}
                values |= {f"{way} {key}{PUBLISHED}": capped[_ROTATED[key]] for key in _RECALLS}
                values[f"{way} rsum{PUBLISHED}"] = sum(capped.values())
        said = [
            part.asking.describe(),
            chosen.protocol(part, False),
            f"from text {len(encoded.images):,} pictures",
            "R@k any of the positives, DCG_CM by the evaluated model and clamped to [0, 1]",
        ]
        if as_published:
            said.append("as published: captions found among the first k over min(k, 5), columns rotated")
        if relevant is not None:
            said.append(f"DCG_CM as published, by {relevant.images.encoder}")
        return (Measurement(values, _on(part, chosen, False), "; ".join(said)),)


@dataclass(frozen=True)
class Suite:
    """Tables 5.3 and 5.4: the thirteen perturbations, run once for both."""

    table: str

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the encoder and the person's choices."""
        from diptych.analysis.perturbations import PERTURBATIONS
        from diptych.evaluation.stress import StressResult

        versions = {name: PERTURBATIONS.get(name).version for name in THIRTEEN}
        return {
            "kind": "brittleness, suite",
            "table": self.table,
            "format": StressResult.FORMAT,
            "perturbations": versions,
        }

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Run the suite, or find it there; the values of every query are kept in its folder."""
        from diptych.analysis.perturbations import choose_perturbations
        from diptych.evaluation.stress import stress
        from diptych.evaluation.stress.queries import RSUM

        chosen, folder = chosen_of(subject.measuring), subject.run.folder
        name = safe_name(f"{subject.collection.name}-{chosen.place}")
        searched = chosen.searched(subject.collection)
        target = folder / "stress" / f"{name}{chosen.mark}"
        result = stress(
            encoder_of(subject.run),
            searched,
            target,
            perturbations=choose_perturbations(["thesis"]),
            seeds=chosen.drawn,
            split=chosen.split,
            language=chosen.opened_language(subject.collection),
            compat=chosen.compat,
            gallery="split" if chosen.gallery == "split" else "all",
            measures=(RSUM,),
            embeddings=folder / "embeddings" / name,
        )
        part = chosen.part(subject.collection)
        _keep_queries(result, chosen.drawn, target, part, folder / "embeddings" / name)
        values = rsum_values(result) if self.table == "rsum" else jaccard_values(result)
        out = "; ".join(f"left out {one}: {why}" for one, why in result.left_out.items())
        protocol = "; ".join(text for text in (result.protocol_line(), result.method, out) if text)
        kept = str(target.relative_to(folder))
        return (Measurement(values, _on(part, chosen, True), protocol, kept=kept),)


def _keep_queries(
    result: StressResult, seeds: Sequence[int], target: Path, part: Part, embeddings: Path
) -> None:
    """Keep the sum of recalls of every query: clean, and with each perturbation, the mean over seeds."""
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.stress import open_condition
    from diptych.evaluation.stress.queries import RSUM, queries_of

    side = queries_of(part, EncodedCollection.open(embeddings))["t2i"]
    values = {NONE: side.measured([RSUM])[RSUM]}
    for row in result.rows:
        each = [open_condition(target, row.name, seed) for seed in seeds]
        values[row.name] = np.mean([one.values[RSUM] for one in each], axis=0)
    keep(target, values, side.cluster)


def rsum_values(result: StressResult) -> dict[str, float]:
    """Sums of recalls, the printed kinds' means among them; for each perturbation the shares of captions that
    are changed and of queries that move, in per cent."""
    from diptych.evaluation.stress.queries import RSUM

    values = {NONE: result.clean["t2i"][RSUM]}
    for row in result.rows:
        values[row.name] = row.drop(RSUM).perturbed
        values[f"{row.name} changed"] = 100 * row.changed_share
        values[f"{row.name} moved"] = 100 * (row.sizes["decreased"] + row.sizes["increased"])
    for kind, members in GROUPS.items():
        there = [values[name] for name in members if name in values]
        if len(there) == len(members):
            values[kind] = sum(there) / len(there)
    return values


def jaccard_values(result: StressResult) -> dict[str, float]:
    """Mean similarities of who is changed; none where no two perturbations were run."""
    agreement = result.agreement.get("t2i")
    if agreement is None:
        return {}
    found = {name: getattr(agreement, name) for name in ("decreased", "increased", "unchanged")}
    return {name: value for name, value in found.items() if value is not None}


BESIDE = "beside"
"""The split of pictures that are beside the part's own."""

_ENDING = ".jpg"


def with_whole_folder(part: Collection) -> Collection:
    """The part's pictures and captions, then all other ``.jpg`` files of the same folders, without captions."""
    source = part.source
    if not isinstance(source, FolderSource):
        raise UsageError(
            f"the pictures of {part.name} are no files of a folder: there is none to search",
            "take the gallery of the split: --set measure.gallery=split",
        )
    if not part.pictured.all():
        raise UsageError(
            f"{int((~part.pictured).sum()):,} items of {part.name} have no picture to be searched",
            "take the gallery of the split: --set measure.gallery=split",
        )
    names = [source.names[row] for row in part.source_rows.tolist()]
    folders = sorted({str(Path(name).parent) for name in names})
    found = {
        str(Path(folder) / file.name)
        for folder in folders
        for file in (source.root / folder).glob("*")
        if file.suffix.lower() == _ENDING
    }
    beside = sorted(found - {str(Path(name)) for name in names})
    return replace(
        part,
        image_ids=[*part.image_ids, *beside],
        splits=[*part.splits, *([BESIDE] * len(beside))],
        source=FolderSource(source.root, [*names, *beside]),
        source_rows=np.arange(len(names) + len(beside), dtype=np.int64),
        records=None if part.records is None else [*part.records, *({} for _ in beside)],
        notes=(*part.notes, f"{len(beside):,} more pictures of its folder are searched"),
    )
