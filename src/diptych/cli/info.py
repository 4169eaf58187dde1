"""``diptych info``: what is installed, what can be named, or what a path holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.categories.about import about_categories, about_products_index
from diptych.cli.console import print_table, say
from diptych.cli.sparse_folder import SparseFolder
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.collection import Collection


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A dataset, run, encoder, embeddings, index or checkpoint, or an encoder's name such as "
            "xvlm:FILE.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what is installed and what can be named, or what a path holds.

    Examples: [bold]diptych info[/bold], [bold]diptych info runs/flickr8k[/bold],
    [bold]diptych info albef:flickr30k.pth[/bold]
    """
    if path is None:
        _environment()
        return
    if Path(path).exists():
        found = _about(Path(path))
    elif ":" in path:
        found = _about_encoder(path)
    else:
        raise UsageError(f"{path} does not exist", "give a path, an encoder's name, or nothing")
    print_table(path, ("what", "value"), [(key, str(value)) for key, value in found])


def _environment() -> None:
    from importlib import metadata

    from diptych.analysis.granularity import FEATURES
    from diptych.analysis.perturbations import PERTURBATIONS
    from diptych.commerce.catalogue import SETTINGS
    from diptych.commerce.catalogue.making import SPLITS as CATALOGUE_SPLITS
    from diptych.commerce.purchase_intent.auditing import CHECKS
    from diptych.commerce.purchase_intent.features import FEATURES as INTENT_FEATURES
    from diptych.commerce.purchase_intent.models import MODELS
    from diptych.commerce.purchase_intent.splits import SPLITS
    from diptych.commerce.purchase_intent.statistics import STATISTICS
    from diptych.data.extended_positives import EXTENDED_POSITIVES
    from diptych.data.judgements import JUDGEMENTS
    from diptych.data.known import KNOWN
    from diptych.data.logs import LOG_FORMATS
    from diptych.data.readers import READERS
    from diptych.data.taxonomy import TAXONOMIES
    from diptych.encoders.family import FAMILIES
    from diptych.evaluation.variants import AXES
    from diptych.index import ENGINES
    from diptych.metrics import MEASURES
    from diptych.objectives import OBJECTIVES
    from diptych.training.recipe import recipe_names
    from diptych.training.run import environment

    values = environment()
    rows = [("diptych", values["diptych"]), ("python", f"{values['python']}, {values['system']}")]
    rows += [(name, version) for name, version in values["libraries"].items()]
    for extra, library in (
        ("datasets", "datasets"),
        ("downloads", "httpcore"),
        ("open-clip", "open_clip_torch"),
        ("language", "nltk"),
        ("engines", "pyseismic-lsr"),
        ("engines", "pyterrier-pisa"),
        ("qdrant", "qdrant-client"),
    ):
        try:
            rows.append((library, metadata.version(library)))
        except metadata.PackageNotFoundError:
            rows.append((library, f"not installed: pip install 'diptych[{extra}]'"))
    rows.append(("processors", f"{values['processors']}, {values['threads']} threads"))
    rows.append(("accelerator", values["accelerator"] or "none"))
    print_table("installed", ("what", "version"), rows)
    print_table(
        "encoders (DualEncoder.load, diptych evaluate and others)",
        ("family", "what it is", "how one is named"),
        [(family.name, family.description, ", ".join(family.forms)) for family in FAMILIES],
    )
    for title, registry in (
        ("known datasets (diptych data NAME)", KNOWN),
        ("readers (--reader)", READERS),
        ("formats of shop logs (diptych intent ingest --format)", LOG_FORMATS),
        ("formats of category trees (diptych categories tree --format)", TAXONOMIES),
        ("statistics of sessions (diptych intent describe)", STATISTICS),
        ("features of a session (diptych intent features)", INTENT_FEATURES),
        ("models of purchase intent (diptych intent evaluate, train --model)", MODELS),
        ("splits of sessions (diptych intent evaluate --split)", SPLITS),
        ("checks for leaks (diptych intent audit --check)", CHECKS),
        ("settings of categories (diptych categories evaluate --setting)", SETTINGS),
        ("splits of a catalogue (diptych categories train --split-by)", CATALOGUE_SPLITS),
        ("objectives (objective.name)", OBJECTIVES),
        ("measures (--measure)", MEASURES),
        ("extended positives (--positives NAME:PATH)", EXTENDED_POSITIVES),
        ("judgements (--judgements NAME:PATH)", JUDGEMENTS),
        ("perturbations (diptych stress, diptych perturb)", PERTURBATIONS),
        ("features of granularity (diptych granularity)", FEATURES),
        ("what a protocol leaves open (diptych protocol)", AXES),
        ("index engines (--engine)", ENGINES),
    ):
        print_table(title, ("name", "what it is"), [(item.name, item.description) for item in registry])
    say(f"recipes (diptych train NAME): {', '.join(recipe_names())}")


def _about(path: Path) -> list[tuple[str, object]]:
    """What a path holds, recognised by the file that marks it."""
    if (path / "run.json").is_file():
        from diptych.training.run import Run

        run = Run.open(path)
        rows: list[tuple[str, object]] = [("kind", "run"), *run.describe().items()]
        tower = ("image tower", run.recipe.model.image.summary)
        tuned = ("fine-tuned from", run.recipe.fine_tune)
        rows += [
            ("objective", run.recipe.objective["name"]),
            tower if run.recipe.fine_tune is None else tuned,
        ]
        return [*rows, ("encoder", run.best if run.best.is_dir() else "none yet")]
    if (path / "embeddings.json").is_file():
        from diptych.encoders.embeddings import Embeddings

        rows_ = Embeddings.open(path)
        return [
            ("kind", f"{rows_.kind} embeddings"),
            ("rows", f"{len(rows_):,} × {rows_.width}"),
            ("encoder", rows_.encoder),
            ("data", rows_.data),
        ]
    if (path / "stress.json").is_file():
        from diptych.evaluation.stress import StressResult

        stressed = StressResult.open(path)
        return [("kind", "stress"), ("protocol", stressed.protocol_line()), ("method", stressed.method)]
    if SparseFolder.is_one(path):
        made = SparseFolder.open(path)
        about = made.sparsifier().describe()
        return [("kind", "sparse head"), ("dense rows of", made.origin.model), *about.items()]
    if (path / "sparse_embeddings.json").is_file():
        from diptych.encoders.sparse_embeddings import SparseEmbeddings

        sparse = SparseEmbeddings.open(path)
        return [
            ("kind", f"sparse {sparse.kind} embeddings"),
            (
                "rows",
                f"{len(sparse):,} of {sparse.rows.nnz / max(1, len(sparse)):.1f} terms among {sparse.width:,}",
            ),
            ("encoder", sparse.encoder),
            ("data", sparse.data),
        ]
    if (path / "sparsified_collection.json").is_file():
        return _about_sparsified(path)
    if (path / "embedded_collection.json").is_file():
        from diptych.encoders.embeddings import EncodedCollection

        encoded = EncodedCollection.open(path)
        return [
            ("kind", "embedded collection"),
            ("pictures", f"{len(encoded.images):,} × {encoded.images.width}"),
            ("captions", f"{len(encoded.texts):,} × {encoded.texts.width}"),
            *((key, encoded.about[key]) for key in ("dataset", "split", "data")),
            ("encoder", encoded.images.encoder),
        ]
    if (path / "index.json").is_file():
        from diptych.index import open_index

        index = open_index(path)
        return [
            ("kind", "index"),
            ("contents", index.describe()),
            *about_products_index(index),
            *index.options.items(),
        ]
    if (path / "reranked.json").is_file():
        return _about_reranked(path)
    if (path / "log.json").is_file():
        return _about_log(path)
    if (categories := about_categories(path)) is not None:
        return categories
    if path.is_file() and path.suffix in (".th", ".pth", ".pt", ".bin", ".safetensors"):
        return _about_checkpoint(path)
    from diptych.encoders.family import FAMILIES

    if (path / "diptych.json").is_file() or any(
        family.recognises(path) for family in FAMILIES if path.is_dir()
    ):
        return _about_encoder(str(path))
    from diptych.data import read_collection

    collection = read_collection(path)
    return [
        ("kind", "dataset"),
        ("contents", collection.describe()),
        *_about_products(collection),
        *(("note", note) for note in collection.notes),
    ]


def _about_products(collection: Collection) -> list[tuple[str, object]]:
    """How many products there are of what, where the dataset is one of products with categories."""
    from diptych.commerce.catalogue import catalogue_of
    from diptych.data.products import paths_of

    if not any(paths_of(record) for record in collection.records or ()):
        return []
    return [("products", catalogue_of(collection).describe())]


def _about_encoder(source: str) -> list[tuple[str, object]]:
    from diptych.encoders.dual_encoder import DualEncoder

    return [("kind", "encoder"), *DualEncoder.load(source).describe().items()]


def _about_reranked(path: Path) -> list[tuple[str, object]]:
    from diptych.metrics import Reranked

    made = Reranked.open(path)
    sizes = (("i2t", "pictures", made.i2t), ("t2i", "captions", made.t2i))
    return [
        ("kind", "re-ranked candidates"),
        *((name, f"the best {one.k:,} of each of {len(one.items):,} {what}") for name, what, one in sizes),
        ("final score", "matching + contrastive" if made.adds_contrastive else "matching"),
        *made.about.items(),
    ]


def _about_log(path: Path) -> list[tuple[str, object]]:
    from diptych.data.logs import Log

    log = Log.open(path)
    dropped = sum(rule["dropped"] for rule in log.about["rules"])
    return [
        ("kind", "shop log"),
        ("contents", log.describe()),
        ("format", log.about["importer"]),
        ("rows read", f"{log.about['rows_read']:,}, of which {dropped:,} were dropped"),
        *((what, f"{log.about[what]:,}") for what in ("clients", "visitors", "purchases")),
        ("buckets", log.about["buckets"]),
        *(("note", note) for note in log.about["notes"]),
    ]


def _about_checkpoint(path: Path) -> list[tuple[str, object]]:
    """Whose checkpoint a file of weights is, by their names."""
    from diptych.encoders.official.checkpoint import (
        LAYOUTS,
        advice,
        is_pre_training,
        looks_like,
        read_checkpoint,
    )

    state = read_checkpoint(path).state
    found = looks_like(state)
    what, load = advice(found, path)
    rows: list[tuple[str, object]] = [
        ("kind", "checkpoint"),
        ("looks like", what),
        ("weights", f"{len(state):,} names, {sum(value.numel() for value in state.values()):,} numbers"),
    ]
    if found in LAYOUTS:
        begun = is_pre_training(state, found)
        rows.append(("stage", "pre-training" if begun else "fine-tuned"))
        load = load.replace(f"{found}:", f"{found}:pretraining:") if begun else load
    return [*rows, ("next", load)]


def _about_sparsified(path: Path) -> list[tuple[str, object]]:
    from diptych.sparse import SparsifiedCollection

    made = SparsifiedCollection.open(path)
    return [
        ("kind", "sparsified collection"),
        ("pictures", f"{len(made.images):,}"),
        ("captions", f"{len(made.texts):,}"),
        ("terms", f"{made.images.width:,}"),
        *((key, made.about[key]) for key in ("dataset", "split", "data", "head")),
    ]
