"""Evaluations, datasets and encoders for other tools: mteb, model cards, TREC, BEIR and Croissant."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from diptych.api.evaluating import is_run
from diptych.api.opening import AnyEncoder, load, read, shown
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, atomic_path, safe_name, write_json, write_text
from diptych.core.reading import read_text, read_toml
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.encoders.dual_encoder import EncoderHeader
from diptych.encoders.embeddings import Origin, read_data
from diptych.evaluation.result import BOTH, Result
from diptych.metrics.ground_truth import DIRECTIONS
from diptych.metrics.measures import discounts
from diptych.metrics.trec import read_qrels, read_run

if TYPE_CHECKING:
    from diptych.encoders.mteb import MtebEncoder

EVALUATION_FORMS, DATASET_FORMS = ("mteb", "model-card", "trec"), ("beir", "croissant")
_CUTOFFS, _DEPTH = (1, 3, 5, 10, 20, 100), 100  # a TREC run of an evaluation has so many items per query
_TASKS = {"i2t": "image-to-text retrieval", "t2i": "text-to-image retrieval", BOTH: "both directions"}


Exported: TypeAlias = tuple[Path, tuple[object, ...]]  # what was written, and a command that looks at it


def export_evaluation(to: str, folder: Path, out: Path | None, language: str = "eng-Latn") -> Exported:
    """Write an evaluation as one of :data:`EVALUATION_FORMS` into ``out``, a model card by default to its encoder."""
    result = Result.open(folder)
    model, encoder = _evaluated_model(folder, result)
    target = needed(out or (encoder if to == "model-card" else None))
    if to == "model-card":
        file = write_model_card(result, target, model, encoder)
        saved = EncoderHeader.is_at(target)
        return file, ("diptych", "info", target) if saved else ("head", "-n", "40", file)
    files = [folder / f"{way}.{kind}" for way in DIRECTIONS for kind in ("run", "qrels")]
    if missing := [file.name for file in files if not file.is_file()]:
        text = f"{folder} has no TREC files ({', '.join(missing)} missing)"
        raise StorageError(text, "evaluate again: diptych evaluate")
    if to == "mteb":
        file = _write_mteb(files, result, model, target, language)
        return file, ("head", "-n", "20", file)
    for file in files:
        with atomic_path(target / file.name) as temporary:
            shutil.copyfile(file, temporary)
    return target, ("head", "-n", "3", target / files[0].name)


def export_collection(to: str, collection: Collection, split: str, out: Path | None) -> Exported:
    """Write a collection as one of :data:`DATASET_FORMS`; ``split`` names the qrels of BEIR."""
    target, source = needed(out), collection.source
    if target.is_file() or any(target.glob("*")):
        raise UsageError(f"{target} is there and not empty", "name a new folder with --out")
    if to == "beir":
        return target, ("head", "-n", "2", _write_beir(collection, target, split))
    table = _write_croissant(collection, target)
    if not isinstance(source, FolderSource):
        return target, ("head", "-n", "2", table)
    return target, ("diptych", "data", "check", "own", table, "--images", source.root)


def needed(out: Path | None) -> Path:
    if out is None:
        raise UsageError("nowhere to write", "name a folder with --out")
    return out


def _evaluated_model(folder: Path, result: Result) -> tuple[str, Path | None]:
    """Return the name of the model, by the run, encoder or embeddings around its evaluation, and its saved encoder."""
    parent, fingerprint = folder.resolve().parent, result.protocol.about.get("encoder")
    place = parent.parent if parent.name == "evaluation" else parent
    origin = Origin.read(place) or Origin.read(place / "embeddings")
    model = place if origin is None else Path(origin.model)
    for saved in (place, place / "best", model, model / "best"):
        if EncoderHeader.is_at(saved) and EncoderHeader.open(saved).fingerprint == fingerprint:
            return (saved.parent if saved.name == "best" else saved).name, saved
    return model.name if model.is_absolute() else str(model).rpartition(":")[2], None


def _of(result: Result) -> tuple[str, str, str]:
    """Return dataset, split and the fingerprint of the data."""
    about = result.protocol.about
    return str(about.get("dataset", "dataset")), str(about.get("split", "all")), str(about.get("data", ""))


def _write_mteb(files: list[Path], result: Result, model: str, out: Path, language: str) -> Path:
    """Write ``OUT/results/MODEL/REVISION/TASK.json`` and ``model_meta.json``: both directions as subsets of a task.

    Measures are computed from rankings, as mteb's are, at cut-offs up to the depth of the TREC files.
    """
    (dataset, split, data), scores = _of(result), []
    for way, run, qrels in zip(DIRECTIONS, files[::2], files[1::2], strict=True):
        values: dict[str, Any] = {**_at_cutoffs(run, qrels), "hf_subset": way, "languages": [language]}
        values["main_score"] = values["ndcg_at_10"]  # as in mteb's own tasks of images and texts
        values["protocol"] = f"whole gallery, {_DEPTH} items per query, the tied by descending id"
        scores.append(values)
    name = model if "/" in model else f"diptych/{model}"
    revision = str(result.protocol.about.get("encoder", "no_revision_available"))
    words = [word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", dataset)]
    content: dict[str, Any] = {"task_name": "".join([*words, "ImageTextRetrieval"]), "dataset_revision": data}
    content |= {"mteb_version": None, "evaluation_time": None, "scores": {split: scores}}
    folder = out / "results" / safe_name(name.replace("/", "__").replace(" ", "_")) / safe_name(revision)
    write_json(folder / "model_meta.json", {"name": name, "revision": revision})
    write_json(folder / f"{content['task_name']}.json", content)
    return folder / f"{content['task_name']}.json"


def _at_cutoffs(run: Path, qrels: Path) -> dict[str, float]:
    """Return the means of mteb's retrieval measures over the queries of ``qrels``, as trec_eval defines them."""
    ranked, judged = read_run(run), read_qrels(qrels)
    hits, relevant = np.zeros((len(judged), _DEPTH)), np.ones(len(judged), dtype=np.int64)
    for row, (query, grades) in enumerate(judged.items()):
        positives = {name for name, grade in grades.items() if grade > 0}
        relevant[row] = max(1, len(positives))
        found = [name in positives for name, _ in ranked.get(query, [])[:_DEPTH]]
        hits[row, : len(found)] = found
    places, weights = np.arange(1, _DEPTH + 1), discounts(_DEPTH)
    precisions = hits * np.cumsum(hits, axis=1) / places
    values: dict[str, float] = {}
    for k in _CUTOFFS:
        first = hits[:, :k]
        at_k = {
            "ndcg": first @ weights[:k] / np.cumsum(weights)[np.minimum(relevant, k) - 1],
            "map": precisions[:, :k].sum(axis=1) / relevant,
            "recall": first.sum(axis=1) / relevant,
            "precision": first.mean(axis=1),
            "mrr": (first / places[:k]).max(axis=1),
            "hit_rate": first.max(axis=1),
        }
        values |= {f"{name}_at_{k}": float(each.mean()) for name, each in at_k.items()}
    return values


def write_model_card(result: Result, folder: Path, model: str = "", encoder: Path | None = None) -> Path:
    """Write an evaluation's numbers with their protocol into ``folder/README.md``; return that file.

    They go to the model index in its head, which hubs read, and to a section of its own. A card that is there, else
    that of ``encoder``, keeps everything but what it says of the same dataset and split.
    """
    hub = require("huggingface_hub.repocard", purpose="writing a model card")
    files = [place / "README.md" for place in (folder, encoder) if place is not None]
    known = next((file for file in files if file.is_file()), None)
    name, protocol = model or folder.resolve().name, result.protocol_line()
    dataset, split, data = _of(result)
    try:
        card = hub.ModelCard(
            f"---\nlibrary_name: diptych\n---\n# {name}" if known is None else read_text(known)
        )
    except (ValueError, hub.yaml.YAMLError) as error:
        text = f"{known} cannot be read as a model card: {str(error).splitlines()[0]}"
        raise StorageError(text, "correct the YAML in its head") from None
    results = [
        hub.EvalResult(
            task_type="image-text-retrieval",
            task_name=_TASKS[way],
            dataset_type=dataset,
            dataset_name=dataset,
            dataset_config=f"{result.protocol.name}, {_TASKS[way]}",
            dataset_split=split,
            dataset_revision=data or None,
            dataset_args={"protocol": protocol},
            metric_type=measure,
            metric_name=f"{measure}, {_TASKS[way]}",
            metric_value=score.value,
            metric_args={key: end for key, end in vars(score).items() if key != "value" and end is not None},
        )
        for way, scores in result.scores.items()
        for measure, score in scores.items()
    ]
    others = [
        one
        for one in card.data.eval_results or ()
        if (one.dataset_type, one.dataset_split) != (dataset, split)
    ]
    card.data.eval_results, card.data.model_name = others + results, card.data.model_name or name
    begin, end = (f"<!-- {mark} of {dataset}, {split} -->" for mark in ("evaluation", "end"))
    tables = "\n".join(table.markdown() for table in result.tables())
    section = f"{begin}\n## Evaluation on {dataset}, {split}\n\n{tables}\n{protocol}\n{end}"
    earlier = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    body, replaced = earlier.subn(lambda _: section, card.text)
    card.text = body if replaced else f"{card.text.rstrip()}\n\n{section}\n"
    write_text(files[0], str(card))
    return files[0]


def _write_beir(collection: Collection, folder: Path, split: str) -> Path:
    """Write a dataset in BEIR's layout per direction; return the corpus of images.

    Images have no text; those that are files have their paths as the key ``image``.
    """
    collection.require_captions("a retrieval dataset")

    def images() -> Iterator[str]:
        for row, name in enumerate(collection.image_ids):
            file = _image_file(collection, row)
            place = {} if file is None else {"image": str(Path(*file).resolve())}
            yield json.dumps({"_id": name, "title": "", "text": "", **place}, ensure_ascii=False) + "\n"

    def texts() -> Iterator[str]:
        for name, text in zip(collection.caption_ids, collection.captions, strict=True):
            yield json.dumps({"_id": name, "title": "", "text": text}, ensure_ascii=False) + "\n"

    def pairs(way: str) -> Iterator[tuple[str, str, str]]:
        for row, text in zip(collection.caption_image.tolist(), collection.caption_ids, strict=True):
            image = collection.image_ids[row]
            yield (image, text, "1") if way == "i2t" else (text, image, "1")

    with atomic_folder(folder) as temporary:
        for way, queries, corpus in (("i2t", images, texts), ("t2i", texts, images)):
            (temporary / way / "qrels").mkdir(parents=True)
            for name, lines in (("queries", queries), ("corpus", corpus)):
                # Half characters, as names of files may hold, become JSON's escapes.
                path = temporary / way / f"{name}.jsonl"
                with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.writelines(lines())
            head = ("query-id", "corpus-id", "score")
            _write_table(temporary / way / "qrels" / f"{split}.tsv", head, pairs(way), "\t")
    return folder / "t2i" / "corpus.jsonl"


def _write_croissant(collection: Collection, folder: Path) -> Path:
    """Write Croissant metadata and the table of images, captions and splits that it describes; return the table."""
    pairs, columns = "pairs.csv", ("image_id", "image", "caption", "split")

    def rows() -> Iterator[Sequence[str]]:
        for row, (name, split) in enumerate(zip(collection.image_ids, collection.splits, strict=True)):
            image = _image_file(collection, row)
            for caption in collection.captions_of(row) or [""]:
                yield name, name if image is None else image[1], caption, split

    content = read_toml(Path(__file__).with_name("croissant.toml"))
    with atomic_folder(folder) as temporary:
        _write_table(temporary / pairs, columns, rows(), ",")
        with open(temporary / pairs, "rb") as file:
            content["distribution"][0]["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        about = {"name": collection.name, "description": collection.describe()}
        write_json(temporary / "croissant.json", content | about)
    return folder / pairs


def _image_file(collection: Collection, row: int) -> tuple[Path, str] | None:
    """Return an image's folder and its file's name below it; None where it is no file."""
    source, place = collection.source, int(collection.source_rows[row])
    return (source.root, source.names[place]) if isinstance(source, FolderSource) and place >= 0 else None


def _write_table(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]], delimiter: str) -> None:
    with open(path, "w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(chain([head], rows))


@shown
def export(
    source: Any, to: str, out: Path | str | None = None, *, split: str | None = None, **how: Any
) -> Path:
    """Write an evaluation or a dataset as other tools of the field read it; return the file or folder.

    Args:
        source: for ``mteb``, ``model-card`` and ``trec`` an evaluation's folder, or a run or saved encoder that was
            evaluated; for a model card also a result. For ``beir`` and ``croissant`` data as :func:`read` takes it,
            or a run, which stands for its own.
        to: a result in mteb's layout, the model index of a README.md, TREC runs and qrels, BEIR's corpus, queries
            and qrels of each direction, or Croissant metadata.
        out: a folder; of a model card the saved encoder's when not given.
        split: of data: the part; ``test`` where there is one.
        how: ``evaluation``, which of several of a run; ``language``, of captions as mteb names it, ``eng-Latn``.

    >>> folder = dp.export(data, "beir", out="beir")
    >>> sorted(path.name for path in folder.iterdir())
    ['i2t', 't2i']
    """
    from diptych.training.folders import the_evaluation

    target = None if out is None else Path(out)
    named = getattr(source, "loaded_from", None) or getattr(source, "folder", source)
    path = Path(named) if isinstance(named, str | Path) else None
    if to in DATASET_FORMS:
        if path is not None and is_run(path):
            from diptych.training.run import Run

            data = Run.open(path).recipe.data
            whole, split = read_data(data.model_dump(mode="json")), split or data.test
        else:
            whole = read(source)
        return export_collection(to, *whole.part(split), target)[0]
    if to not in EVALUATION_FORMS:
        raise UnknownNameError("form of an export", to, EVALUATION_FORMS + DATASET_FORMS)
    if isinstance(source, Result) and to == "model-card":
        return write_model_card(source, needed(target))
    if path is None:
        text = f"a {type(source).__name__} in memory cannot be written as {to}"
        raise UsageError(text, "give the folder of a run or of an evaluation: dp.evaluate(…, out=FOLDER)")
    folder = the_evaluation(path, how.pop("evaluation", None))
    return export_evaluation(to, folder, target, **how)[0]


def as_mteb(encoder: AnyEncoder) -> MtebEncoder:
    """Return an encoder as one of mteb 2, of images, texts, or both: ``mteb.evaluate(dp.as_mteb("runs/x"), tasks)``.

    >>> dp.as_mteb("runs/x").mteb_model_meta.embed_dim == dp.load("runs/x").width
    True
    """
    from diptych.encoders.mteb import MtebEncoder

    return MtebEncoder(load(encoder))
