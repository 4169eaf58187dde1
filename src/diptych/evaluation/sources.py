"""From the name of a run, an encoder or embeddings, and data, to embeddings and everything measured on them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.perturbations import choose_perturbations
from diptych.analysis.perturbations.declaration import options_by_name
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import DataError, MismatchError, StorageError, UsageError
from diptych.core.files import check_replaceable, safe_name, write_json
from diptych.core.fingerprint import fingerprint_file
from diptych.core.options import parse_values
from diptych.core.reading import map_array
from diptych.core.table import Table
from diptych.data.collection import SPLITS, Collection
from diptych.data.judgements import read_judgements
from diptych.data.source import DataSpec
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import ORIGIN_FILE, EncodedCollection, Origin, check_still_there
from diptych.encoders.encode import encode_collection, stored_collection
from diptych.encoders.family import resolve, rooted
from diptych.encoders.rerank import require_matching, rerank, stored_candidates
from diptych.evaluation.evaluate_encoder import evaluate_encoded, ground_truth_of, positives_of, relevance_of
from diptych.evaluation.judgements import HumanAgreement, judge_encoded
from diptych.evaluation.options import EvaluateOptions, ProtocolOptions, StressOptions
from diptych.evaluation.printed.target import Target
from diptych.evaluation.result import Result
from diptych.evaluation.shortcuts import BothConditions, evaluate_both
from diptych.evaluation.stress.result import StressResult
from diptych.evaluation.stress.stress import stress
from diptych.evaluation.variants.exploration import Exploration
from diptych.evaluation.variants.explore import as_ground_truth, explore, explore_scores
from diptych.evaluation.variants.recompute import Scored
from diptych.metrics import Relevance, Reranked, similarity

_PARTS = ("images", "texts", "caption_image.npy", "reranked")  # of embeddings that are not finished


@dataclass(frozen=True)
class Named:
    """A run, an encoder or embeddings, as it was named, and the part of the data that it is used on."""

    name: str  # a folder, or a name such as hf:NAME
    data: Mapping[str, Any] | None = None  # a recipe's data section; None for the run's own
    split: str | None = None  # all for everything; None for the test split where there is one
    captions: str = "all"
    own: Mapping[str, Any] | None = None  # the data section of the run's recipe; None for what is no run
    test: str = "test"
    # how embedding is shared, as ``encode_collection`` takes it: processes, accelerator, ray
    work: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def opened(self) -> tuple[Origin, Collection]:
        """Return the origin, data and split, and the whole collection."""
        resolve(self.name)  # a wrong name is found before the data is read, the data before weights are
        section = self.own if self.data is None else self.data
        if section is None:
            raise UsageError("no data given", "give a dataset with --data")
        origin = Origin(rooted(self.name), dict(section), None, self.captions)
        collection = origin.collection()
        split = None if self.split == "all" else self.split
        if self.split in SPLITS or (self.split is None and self.is_own(origin)):
            collection = collection.divided()  # where the data names no splits, as it was for training
        if self.split is None and self.test in collection.split_sizes:
            split = self.test
        return replace(origin, split=split, centric=collection.centric), collection

    @property
    def device(self) -> str | None:
        """Return the device of this process's encoder; with several processes it only names what the others load."""
        accelerator = self.work.get("accelerator", "auto")
        if self.work.get("processes", 1) > 1 or self.work.get("ray"):
            return "cpu"
        return {"auto": None, "gpu": "cuda"}.get(accelerator, accelerator)

    @cached_property
    def encoder(self) -> DualEncoder:
        return DualEncoder.load(self.name, device=self.device)

    def is_own(self, origin: Origin) -> bool:
        def source(section: Mapping[str, Any]) -> list[Any]:
            path = section.get("path")
            place = str(Path(path).resolve()) if path is not None and Path(path).exists() else path
            return [place, section.get("reader"), section.get("options") or {}, section.get("scenes")]

        return self.own is not None and source(self.own) == source(origin.data)

    def embedded(self, kind: type[EncodedCollection]) -> tuple[EncodedCollection, Origin, Path] | None:
        """Return the embeddings in the named folder; None where it holds none."""
        folder = Path(self.name)
        origin = Origin.read(folder)
        if origin is None:
            return None
        if self.data is not None or self.split is not None or self.captions != "all":
            raise UsageError(f"{self.name} is embedded already", "leave --data, --split and --captions out")
        return kind.open(folder), origin, folder

    def encoded(
        self, out: Path | None = None, *, reuse: bool = False
    ) -> tuple[EncodedCollection, Origin, Path]:
        """Return embeddings, their origin and their folder: those stored there, or new ones.

        With ``reuse`` those stored in the run are used even where ``out`` is given.
        """
        folder = Path(self.name)
        if (embedded := self.embedded(EncodedCollection)) is not None:
            return embedded
        if any(folder.glob("*.unfinished")):
            raise UsageError(
                f"{self.name} is not finished", "repeat the command that began it: diptych embed resumes"
            )
        origin, collection = self.opened
        part = collection if origin.split is None else collection.split(origin.split)
        name = f"{collection.name}-{origin.part}"
        if self.own is not None and not self.is_own(origin):
            name += f"-{part.text_fingerprint[:8]}"
        usual = folder / "embeddings" / safe_name(name)
        if out is None and not folder.is_dir():
            raise UsageError("nowhere to write", f"{self.name} is no folder: name one with --out")
        stored = (
            None if out is None or not reuse else stored_collection(self.encoder, part, usual, origin.split)
        )
        if stored is not None:
            return stored, origin, usual
        out = out or usual
        check_replaceable(out, EncodedCollection.marker(), _PARTS)
        return encode_part(self.encoder, collection, origin, out, **self.work), origin, out

    def result_folder(self, encoded: EncodedCollection, origin: Origin) -> Path:
        """Return the folder of an evaluation: named by its data unless they are the run's own."""
        name, data = safe_name(f"{encoded.about['dataset']}-{origin.part}"), str(encoded.about["data"])
        base = Path(self.name) / "evaluation" / name
        evaluated = data if self.own is None or self.is_own(origin) else None
        with suppress(StorageError):
            evaluated = evaluated and Result.open(base).protocol.about.get("data", data)
        return base if evaluated == data else base.with_name(safe_name(f"{name}-{data[:8]}"))

    def check_matching(self) -> None:
        """Refuse before the work an encoder without a matching head; embeddings are checked when it is needed."""
        if Origin.read(Path(self.name)) is None:
            _ = self.opened
            require_matching(self.encoder)

    def candidates(
        self, encoded: EncodedCollection, origin: Origin, folder: Path, kept: Path, k: int
    ) -> Reranked:
        """Return candidates stored with the embeddings in ``folder`` or in ``kept``; score them into it else."""
        for place in dict.fromkeys((folder, kept)):
            found = stored_candidates(place / "reranked", encoded, k)
            if found is not None:
                return found
        check_still_there(origin.model, folder)
        encoder = self.encoder if Origin.read(Path(self.name)) is None else DualEncoder.load(origin.model)
        require_matching(encoder)
        return rerank(encoder, origin.collection(), encoded, k, folder=kept / "reranked")


def encode_part(
    encoder: DualEncoder, whole: Collection, origin: Origin, out: Path, **work: Any
) -> EncodedCollection:
    """Embed the part of ``whole`` that ``origin`` names into ``out``, and say there where it is from."""
    part = whole if origin.split is None else whole.split(origin.split)
    encoded = encode_collection(encoder, part, out, origin.split, **work)
    write_json(out / ORIGIN_FILE, asdict(origin))
    return encoded


def named_relevance(name: str, encoded: EncodedCollection, origin: Origin, folder: Path) -> Relevance:
    """Return the relevance model called ``name``: embeddings, or an encoder that encodes next to ``folder``."""
    if EncodedCollection.is_at(name):
        return relevance_of(encoded, EncodedCollection.open(name))
    encoder = DualEncoder.load(name)
    home = folder.with_name(f"{folder.name}-relevance-{encoder.fingerprint[:8]}")
    part = replace(origin, model=name)
    return relevance_of(encoded, encode_part(encoder, replace(part, split=None).collection(), part, home))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One evaluation of several: title, folder, result, and agreement with human judgements."""

    title: str
    folder: Path
    result: Result
    agreement: HumanAgreement | None = None

    def tables(self) -> list[Table]:
        """Return the measures, and how they correlate with human judgements."""
        own = [replace(table, caption=self.title) for table in self.result.tables()]
        return own + ([] if self.agreement is None else self.agreement.tables())

    def lines(self) -> list[str]:
        """Return the protocol, the folder, and what judgements are of."""
        lines = [self.result.protocol_line(), f"with values per query and TREC files in {self.folder}"]
        return lines + ([] if self.agreement is None else self.agreement.lines())


@dataclass(frozen=True, eq=False)
class Evaluations:
    each: list[Evaluated]  # per format of positives the first stage, and the second where there is one
    folder: Path  # of the embeddings
    encoded: EncodedCollection
    origin: Origin
    measures: Sequence[str]
    options: Mapping[str, Any]  # of the first stage
    out: Path | None  # where everything went; None for folders of the source

    def with_shortcuts(
        self, source: Named, shortcuts: Callable[[Collection], Shortcuts | None]
    ) -> BothConditions | None:
        """Evaluate the same with the shortcuts of training; None where nothing can carry them.

        Embeddings and results are stored next to those of :func:`evaluate_named`.
        """
        first, home, collection = self.each[0], self.out or Path(source.name), source.opened[1]
        if self.origin.split is None or first.result.protocol.about.get("positives"):
            return None
        both = evaluate_both(
            source.encoder,
            collection,
            self.origin.split,
            home / "embeddings",
            home / "evaluation",
            self.measures,
            shortcuts=shortcuts(collection),
            name=first.folder.name if self.out is None else None,
            without=first.result,
            **self.options,
        )
        return None if both.with_shortcuts is None else both


def evaluate_named(source: Named, options: EvaluateOptions) -> Evaluations:
    """Evaluate against every format of positives, in one stage and in two, and compare with human judgements.

    Results go to ``out/evaluation``, embeddings to ``out/embeddings`` where the source has none; without ``out``
    to folders of the source.
    """
    measures, out, rerank = options.measures(), options.out, options.rerank
    judged = None if options.judgements is None else read_judgements(options.judgements)
    kinds = [kind.partition(":")[0] for kind in options.positives]
    if len(set(kinds)) < len(kinds):
        text = f"--positives names one format twice: {', '.join(options.positives)}"
        raise UsageError(text, "evaluate one after the other with --out")
    if rerank is not None:
        source.check_matching()
    kept = None if out is None else out / "embeddings"
    encoded, origin, folder = source.encoded(kept, reuse=True)
    kept = kept or folder  # a run that cannot be written is evaluated with --out
    candidates = None if rerank is None else source.candidates(encoded, origin, folder, kept, rerank)
    relevance, samples, unranked = options.relevance, options.samples, options.unranked or "miss"
    judge = None if relevance is None else named_relevance(relevance, encoded, origin, kept)
    if not options.measure and judged is not None and rerank is None:  # the user did not name these measures
        measures = (*measures, *gains_for_judgements(encoded, judge))
    base = source.result_folder(encoded, origin) if out is None else out / "evaluation"
    targets = [base.with_name(f"{base.name}-{kind}") for kind in kinds] or [base]
    first: dict[str, Any] = {
        "ties": options.ties or "expected",
        "relevance": judge,
        "protocol": options.protocol,
        "samples": samples,
    }
    found, further = [], parse_values(options.positives_option, "--positives-option")
    for kind, target in zip_longest(options.positives, targets):
        extended = None if kind is None else positives_of(encoded, kind, **further)
        how: dict[str, Any] = {**first, "positives": extended, "about": origin.protocol()}
        result, agreement = evaluate_encoded(encoded, target, measures, **how), None
        if judged is not None:
            agreement = judge_encoded(
                encoded, result, judged, target, positives=extended, relevance=judge, samples=samples
            )
        title = "" if rerank is None else "contrastive: the first stage only"
        found.append(Evaluated(title, target, result, agreement))
        if candidates is not None:
            target = target.with_name(f"{target.name}-reranked-{rerank}-{unranked}")
            how |= {"ties": options.ties, "relevance": None, "k": rerank, "unranked": unranked}
            how["reranked"] = candidates
            title = f"re-ranked: the best {rerank:,} of each query, scored again by the matching head"
            found.append(Evaluated(title, target, evaluate_encoded(encoded, target, measures, **how)))
    return Evaluations(found, folder, encoded, origin, measures, first, out)


def gains_for_judgements(encoded: EncodedCollection, relevance: Relevance | None) -> tuple[str, ...]:
    """Return the gains that are measured besides the default measures where human judgements are given."""
    if encoded.similarity != "cosine" and relevance is None:
        return ("nDCG@10",)  # penalties are no gains
    return ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def stress_named(source: Named, options: StressOptions) -> tuple[StressResult, Path, Collection]:
    """Stress an encoder; return the result, its folder (``out``, or one of the run) and the whole collection."""
    names = [name for text in options.perturb or ["all"] for name in text.split(",") if name]
    chosen, out = choose_perturbations(names), options.out
    if (embedded := Origin.read(Path(source.name))) is not None:
        text = f"{source.name} holds embeddings, no encoder: perturbed queries cannot be encoded"
        raise UsageError(text, f"name the encoder that made them, {embedded.model}")
    if out is None and not Path(source.name).is_dir():
        raise UsageError("nowhere to write", f"{source.name} is no folder: name one with --out")
    origin, whole = source.opened
    name, relevance = safe_name(f"{whole.name}-{origin.part}"), options.relevance
    folder = out or Path(source.name) / "stress" / name
    # Clean embeddings of a run's own split are kept with those of its evaluations.
    is_shared = source.own is not None and out is None and options.gallery == "split"
    found = stress(
        source.encoder,
        whole,
        folder,
        perturbations=chosen,
        seeds=None if options.seeds is None else range(options.seeds),
        split=origin.split,
        language=options.open(whole),
        options=options_by_name(options.set_),
        relevance=None if relevance is None else DualEncoder.load(relevance),
        measures=options.measure or None,
        required={one.name for one in chosen} & set(names),
        embeddings=Path(source.name) / "embeddings" / name if is_shared else None,
        about=origin.protocol(),
        **options.model_dump(include={"compat", "gallery", "samples", "flips"}),
    )
    write_json(folder / ORIGIN_FILE, asdict(origin))
    return found, folder, whole


Embedded = tuple[EncodedCollection, Origin, Path]  # embeddings, their origin and their folder

_Opened = Callable[[str, DataSpec, str | None, Path | None], Embedded]
_Warnings = Callable[[Mapping[str, tuple[Mapping[str, Any], int]]], tuple[str, ...]]


def explore_named(
    options: ProtocolOptions, target: Target, opened: _Opened, warnings: _Warnings, of: list[str]
) -> Exploration:
    """Explore what was named; without anything named the digits are read.

    ``opened`` returns the embeddings of a name, data, its split and a folder for what is embedded; ``warnings``,
    from metadata and number of images of every test set, what precedes any verdict; ``of`` names what was printed.
    """
    if options.source is None:
        return Exploration(target, of=of)
    how = options.model_dump(include={"tolerance", "changes"})
    if options.is_matrix:
        found, lines = _explore_files(Path(options.source), options, target, how)
        return replace(found, of=[*of, *lines])
    kept = None if options.out is None else options.out / "embeddings"
    embedded = opened(options.source, options, options.split, kept)
    sets, lines = {embedded[1].split or "all": embedded}, list[str]()
    for text in options.also:
        key, _, place = text.partition("=")
        if not key or not place:
            raise UsageError(f"--also {text!r} is not LABEL=FOLDER", "e.g. --also val=embedded/val")
        if key in sets:
            raise UsageError(f"--also: two sets of embeddings are called {key!r}", "give each its own label")
        sets[key] = opened(place, DataSpec(), None, None)
    first, label, sources = embedded[0], next(iter(sets)), dict[str, Scored]()
    for key, (encoded, _, folder) in sets.items():
        sources[key] = _scored(key, encoded, folder, lines, None if sources else options.reranked)
        if encoded.similarity != first.similarity:
            text = f"{label} is compared by {first.similarity}, {key} by {encoded.similarity}"
            raise MismatchError(text, "give embeddings of the same model")
        encoders = encoded.images.encoder, first.images.encoder
        if encoders[0] != encoders[1]:
            text = f"{key} is of another encoder or other preprocessing than {label}"
            lines.append(f"{text}: {' and '.join(encoders)}")
    known = {key: (one.about, one.truth.n_images) for key, one in sources.items()}
    return replace(explore(sources, target, warnings=warnings(known), **how), of=[*of, *lines])


def _explore_files(
    scores: Path, options: ProtocolOptions, target: Target, how: dict[str, Any]
) -> tuple[Exploration, list[str]]:
    files: dict[str, Path] = {}
    for text in options.matching:
        side, _, file = text.partition("=")
        is_side = side in ("i2t", "t2i") and bool(file)
        files[side if is_side else ""] = Path(file if is_side else text)
    if len(files) < len(options.matching) or ("" in files and len(files) > 1):
        text = f"--matching is given {len(options.matching)} times: {', '.join(options.matching)}"
        raise UsageError(text, "one FILE.npy of all pairs, or i2t=FILE.npy and t2i=FILE.npy")
    home = None if options.caption_image is None else _loaded(options.caption_image)
    matrix = _loaded(scores)
    truth, metadata = as_ground_truth(home, matrix.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (scores, *files.values()))
    lines = [f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}"]
    lines += [f"captions: {assumed}" for assumed in metadata.values()]
    return explore_scores(matrix, truth, target, matching=sides.get("", sides or None), **how), lines


def _loaded(file: Path) -> np.ndarray:
    return map_array(file, error=DataError, fix="give a file that numpy.save wrote")


def _scored(
    label: str, encoded: EncodedCollection, folder: Path, lines: list[str], reranked: Path | None
) -> Scored:
    """Return a test set; ``lines`` say what it is. Candidates of ``reranked`` must belong to it, others need not."""
    about = encoded.about
    split, marks = about["split"] or "all", {"encoder": encoded.images.encoder, "data": about["data"]}
    place, candidates, more = reranked or folder / "reranked", None, ""
    if reranked is not None or Reranked.is_at(place):
        candidates, more = Reranked.open(place), f"; candidates of {place}"
        for what, mine in marks.items():
            if candidates is not None and (theirs := candidates.about.get(what, mine)) != mine:
                message = f"{place} was re-ranked with {what} {theirs}, the embeddings are of {mine}"
                if reranked is not None:
                    raise MismatchError(message, "re-rank these embeddings, or name those that were")
                lines.append(f"{place} is left aside: {message}")
                candidates, more = None, ""
    lines.append(
        f"{label}: {about['dataset']} {split}, {len(encoded.images):,} images, {len(encoded.texts):,} captions;"
        f" encoder {marks['encoder']}; data {marks['data']}{more}"
    )
    for side in (encoded.images, encoded.texts):
        side.check_finite()  # here, where the ids are known
    scores = similarity(encoded.similarity).source(encoded.images.rows, encoded.texts.rows)
    metadata = {"dataset": about["dataset"], "split": split, **marks}
    truth, ids = ground_truth_of(encoded), encoded.images.ids
    return Scored(scores, truth, reranked=candidates, about=metadata, image_ids=ids)
