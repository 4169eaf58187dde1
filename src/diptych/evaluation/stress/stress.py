"""The stress run: an encoder queried with perturbed queries, over a gallery that stays as it is.

Text perturbations change the captions that query images, image perturbations the images that query captions.
The gallery is encoded once, a query only when it was changed; whatever is finished is kept, so that the same
call resumes after a kill and ends with the same bytes.

Source: Hendriksen's thesis, chapter 5, sections 5.4 and 5.5.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.perturbations import Perturbation, TextPerturbation
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.perturbations.perturb import COMPATS, PUBLISHED_SEED
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.given_rows import GivenRows
from diptych.evaluation.drops import drops_line
from diptych.evaluation.stress.conditions import Clean, Conditions
from diptych.evaluation.stress.queries import RSUM, Part, part_of, queries_of
from diptych.evaluation.stress.result import CLEAN, StressResult, agreements, rows_of
from diptych.metrics import measure

STRESS_MEASURES = ("R@1", "R@5", "R@10", RSUM, "DCG_CM@10", "nDCG_CM@10")
DEFAULT_SEEDS = (0, 1, 2)


def stress(
    encoder: DualEncoder,
    collection: Collection,
    folder: Path | str,  # of the result, conditions and embeddings; what is there of the same content is used
    *,
    perturbations: Sequence[Perturbation],
    seeds: Sequence[int] | None = None,  # of each perturbation: 0, 1, 2; 42 under ``compat="published"``
    split: str | None = None,  # the part that asks; None for all of the collection
    language: Language | None = None,  # without a tagger or WordNet, perturbations that need it are left out
    compat: str = "none",  # published: perturbations as published, and the relevance of the changed query
    options: Mapping[str, Mapping[str, Any]] | None = None,  # per perturbation
    gallery: str = "split",  # whose images captions query; ``all`` of the collection in the published runs
    relevance: DualEncoder | None = None,  # its similarity is the gain of DCG_CM; else the encoder's
    measures: Sequence[str] | None = None,  # shares or gains; ``rsum`` is that of one direction
    samples: int = 1000,  # resamples for 95 % intervals; 0 for none
    flips: int = 100_000,  # random swaps for p-values, corrected by Holm's method over all
    required: Iterable[str] = (),  # names of perturbations that must not be left out
    embeddings: Path | str | None = None,  # where clean rows are kept; ``folder/embeddings`` by default
    about: Mapping[str, Any] | None = None,  # what else the numbers depend on
) -> StressResult:
    """Measure which changes of queries hurt an encoder, and whether that is significant."""
    folder, language = Path(folder), language or Language("none")
    collection.require_captions("a stress test")
    for given in (encoder, relevance):
        if isinstance(given, GivenRows):
            text = f"{given.folder} holds rows, no encoder: perturbed queries cannot be encoded"
            raise UsageError(text, "name the encoder that made them")
    if compat not in COMPATS:
        raise UsageError(f"compat is {compat!r}", f"one of {', '.join(COMPATS)}")
    if seeds is None:
        seeds = (PUBLISHED_SEED,) if compat == "published" else DEFAULT_SEEDS
    if measures is None:
        gains = encoder.similarity == "cosine" or relevance is not None
        measures = [name for name in STRESS_MEASURES if gains or "DCG_CM" not in name]
    perturbations = list({one.name: one for one in perturbations}.values())
    measures = list(dict.fromkeys(measures))  # what is named twice is tested once
    check_requested(perturbations, seeds, measures, options or {})
    possible, left_out, required = [], {}, set(required)
    for one in perturbations:
        error = obstacle(one, encoder, collection, language, compat)
        if error is None:
            possible.append(one)
        elif one.name in required:
            raise error
        else:
            left_out[one.name] = str(error)
    if not possible:
        first = next(iter(left_out.values()))
        raise UsageError(f"none of {len(left_out)} perturbations can be run: {first}")
    part = part_of(collection, split, gallery)
    check_replaceable(folder, "conditions")
    with exclusive_folder(folder):
        (folder / "conditions").mkdir(exist_ok=True)
        encoded = encode_collection(encoder, part.encoded, embeddings or folder / "embeddings", split)
        relevant = None
        if relevance is not None:
            relevant = encode_collection(relevance, part.encoded, folder / "relevance", split)
        reads_changed = relevance if compat == "published" else None
        conditions = Conditions(
            encoder=encoder,
            asking=part.asking,
            sides=queries_of(part, encoded, relevant),
            folder=folder,
            seeds=tuple(seeds),
            measures=tuple(measures),
            language=language,
            compat=compat,
            options=options or {},
            relevance=reads_changed,
            content={
                "encoder": encoded.images.encoder,
                "data": encoded.about["data"],
                "asking": list(map(int, part.rows)),
                "relevance": None if relevant is None else relevant.images.encoder,
                "relevance of": "changed" if reads_changed is not None else "clean",
            },
        )
        how: dict[str, Any] = {"samples": samples, "flips": flips, "seed": 0, "confidence": 0.95}
        protocol = _protocol(part, encoded, relevant, gallery, conditions, about or {})
        keys = [conditions.key(one, seed) for one in possible for seed in conditions.seeds]
        key = fingerprint(keys, left_out, how, protocol)
        made = conditions.of(possible)  # also of a finished run: what is missing or corrupt is mended
        try:
            Clean.open(folder / CLEAN, of=key)
        except StorageError:  # missing, corrupt or of other content
            conditions.clean.save(folder / CLEAN, of=key)
        with suppress(StorageError):
            finished = StressResult.open(folder, of=key)
            object.__setattr__(finished, "opened", True)
            return finished
        clean = conditions.clean.values
        result = StressResult(
            key=key,
            model=str(encoded.about["encoder"].get("name", encoder.family)),
            protocol=protocol,
            method=drops_line(len(possible) * len(measures), **how),
            measures=tuple(measures),
            clean={
                direction: {name: float(np.mean(values[name])) for name in measures}
                for direction, values in clean.items()
            },
            rows=rows_of(made, clean, conditions.sides, part.asking, measures, how),
            left_out=left_out,
            agreement=agreements(made, clean),
            notes=tuple(part.encoded.notes),
        )
        result.write_header(folder, of=key)
        return StressResult.open(folder)  # the same object as of a later call


def _protocol(
    part: Part,
    encoded: EncodedCollection,
    relevant: EncodedCollection | None,
    gallery: str,
    conditions: Conditions,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    asking, pictures = part.asking, len(encoded.images)
    which = "of the split" if gallery == "split" else "of the whole collection"
    gain = "the encoder's own similarity"
    if relevant is not None:
        query, name = conditions.content["relevance of"], relevant.about["encoder"].get("name", "")
        gain = f"similarity to the {query} query by {name} {relevant.images.encoder}"
    without = asking.n_images - len(np.unique(asking.caption_image))
    counted = f", {without:,} without a caption of their own, which count as 0" if without else ""
    return {
        "dataset": asking.name,
        "split": encoded.about["split"] or "all",
        "captions asking": f"{asking.n_captions:,} over a gallery of {pictures:,} pictures {which}",
        "pictures asking": f"{asking.n_images:,} over a gallery of {asking.n_captions:,} captions{counted}",
        "seeds": ", ".join(map(str, conditions.seeds)),
        "compat": conditions.compat,
        "language": conditions.language.line(),
        **({"gain of DCG_CM": gain} if any("DCG_CM" in name for name in conditions.measures) else {}),
        "ties": "expected",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
        **about,
    }


def obstacle(
    perturbation: Perturbation,
    encoder: DualEncoder,
    collection: Collection,
    language: Language,
    compat: str = "none",
) -> UsageError | None:
    """Return what stands against a perturbation, with the way out; None where nothing does."""
    name = perturbation.name
    if not isinstance(perturbation, TextPerturbation):
        if encoder.takes != "pictures" or collection.holds != "pictures":
            return UsageError(
                f"{name}: the encoder takes {encoder.takes}, {collection.name} holds {collection.holds}",
                "images are perturbed for an encoder of images",
            )
        return None
    if compat == "published" and perturbation.published is None:
        return UsageError(f"{name} has no published form", "leave compat out")
    needs = {"tags": language.need_tagger, "wordnet": language.need_wordnet}
    for what in sorted(perturbation.needs):
        try:
            needs[what](name)
        except UsageError as error:
            return error
    return None


def check_requested(
    perturbations: Sequence[Perturbation],
    seeds: Sequence[int],
    measures: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> None:
    if not perturbations:
        raise UsageError("no perturbation was requested", "for example all, thesis, typos")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise UsageError(f"seeds are {list(seeds)}", "give one or more different numbers of at least 0")
    if not measures:
        raise UsageError("no measure was requested", "for example rsum")
    for name in measures:
        if name != RSUM and getattr(measure(name), "kind", "sum") in ("rank", "sum"):
            raise UsageError(f"{name} is no mean of shares or gains per query", "see diptych info")
    by_name = {one.name: one for one in perturbations}
    for name, given in options.items():
        if name not in by_name:
            raise UnknownNameError("perturbation with options", name, by_name)
        options_of(by_name[name], given)
