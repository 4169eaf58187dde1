"""Training on a catalogue, and applying a run to one: rows, images, evaluations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts, judge
from diptych.commerce.catalogue.making import catalogue_of, seen_nodes
from diptych.commerce.catalogue.source import (
    VALIDATION,
    CatalogueSource,
    described,
    training_part,
    validation_part,
)
from diptych.commerce.category_to_image.features import FeatureMaker, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.picking import Among, Distinct, Picks, pick_rows
from diptych.commerce.category_to_image.rankers import product_embeddings, product_rows
from diptych.commerce.category_to_image.runs import CategoryRun, encoder_name
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import check_replaceable
from diptych.data.products import paths_of
from diptych.index import ENGINES, Index, build_index

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.evaluation.result import Result

_HELD = 100_000
"""Of more products rows go to a file while they are used."""


def train_run(
    catalogue: Catalogue, data: Mapping[str, Any], maker: FeatureMaker, options: TrainOptions, out: Path
) -> tuple[CategoryRun, ProductFeatures]:
    """Train on the split ``train``, choose the epoch by the validation split if there is one; killed, it resumes.

    Returns:
        The run; features of the products that it was trained on.
    """
    from diptych.commerce.category_to_image.training import train

    [learned], validated = training_part(catalogue), validation_part(catalogue)
    features = maker.products(learned, missing="none")
    nodes = range(len(catalogue.tree))
    categories = maker.categories(category_texts(catalogue.tree, nodes, options.query))
    validation = None if validated is None else (validated, maker.products(validated, missing="none"))
    trained = train(learned, features, categories, options, out, validation=validation)
    return CategoryRun.finish(out, trained, maker, catalogue, data), features


def training_lines(run: CategoryRun, catalogue: Catalogue, features: ProductFeatures) -> list[str]:
    """Return what was trained on how much, which encoders made the rows, and which epoch was taken."""
    about, encoders = run.model.about, run.about["encoders"]
    split_by = run.about["data"].get("split_by")
    sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
    lines = [catalogue.describe(), *(f"  {note}" for note in catalogue.notes)]
    lines.append(f"splits: {sizes}{f', by {split_by}' if split_by else ''}")
    if unreadable := int(features.about.get("unreadable_pictures") or 0):
        lines.append(f"{unreadable:,} pictures to train on cannot be read: their products stand without")
    image, text = encoders["image"], encoders["text"]
    shown = encoder_name(image) if image else "none, the model needs none"
    lines.append(f"text encoder: {encoder_name(text)}; image encoder: {shown}")
    if image and image.get("kind") == "grid":
        lines.append(
            "  the grid sees colours and edges alone: better pictures with --image-encoder backbone:NAME or hf:NAME"
        )
    if text.get("kind") == "lsa":
        lines.append(
            "  lsa knows the words of the training products alone: better texts with --text-encoder sentence:NAME"
        )
    left, chosen = about["without_category"], about["chosen_by"]
    skipped = f", {left:,} without a category left out" if left else ""
    lines.append(f"{run.describe()}: trained on {about['products']:,} products{skipped}")
    last = about["metrics"][about["best_epoch"] - 1]
    why = f"the best by {chosen} of validation products" if chosen else "the last"
    measured = f", {chosen} {100 * last[chosen]:.2f} %" if chosen else ""
    lines.append(
        f"epoch {about['best_epoch']} of {about['epochs']}, {why}: loss {last['loss']:.4f}{measured}"
    )
    return lines


def measure_run(run: CategoryRun, catalogue: Catalogue) -> Result | None:
    """Measure the test split; None where there is none, or none of it has a category."""
    from diptych.commerce.category_to_image.evaluation.measure import measure_ranker

    part = catalogue.split("test") if "test" in catalogue.split_sizes else None
    if part is None or not bool((part.place >= 0).any()):
        return None
    judged = judge(part, run.options.setting, "label", run.options.seed)
    about = {"dataset": catalogue.name, "split": "test"}
    categories = run.category_features(judged.nodes)
    return measure_ranker(run.model, run.features(part), categories, judged, about=about)


def own_products(run: CategoryRun) -> Catalogue:
    """Return the products that a run was trained on, with their splits; later ones are of the split ``new``."""
    catalogue: Catalogue = described(CatalogueSource, run.about["data"], run.folder).catalogue()
    splits = run.splits
    return replace(catalogue, splits=[splits.get(name, "new") for name in catalogue.ids])


def other_products(
    run: CategoryRun, source: CatalogueSource, *, own_tree: bool
) -> tuple[Catalogue, dict[str, Any]]:
    """Return other products than a run's, as it reads attributes, and how they were read.

    They are sorted into the tree of their taxonomy, with ``own_tree`` into their own where any product has a category,
    else into the run's.
    """
    form = str(run.about["data"].get("attribute_form", "named"))
    collection = source.collection()
    sorted_already = own_tree and any(paths_of(record) for record in collection.records or ())
    if source.taxonomy is not None or sorted_already:
        source = replace(source, attribute_form=form, split_by="given")
        return source.catalogue(), asdict(source)
    catalogue = catalogue_of(collection, tree=run.tree, attribute_form=form, unknown="none")  # type: ignore[arg-type]
    return catalogue, {"data": source.data, "reader": source.reader, "tree": "the run's"}


def count_trained_on(run: CategoryRun, catalogue: Catalogue, *, own: bool) -> int:
    """Count the products, by id, that the run was trained on; of its ``own`` those with a category alone."""
    splits = run.splits
    return sum(
        splits.get(name) == "train" and not (own and place < 0)
        for name, place in zip(catalogue.ids, catalogue.place.tolist(), strict=True)
    )


def known_products(run: CategoryRun, catalogue: Catalogue) -> np.ndarray:
    """Return (n,) booleans: which products have any of what the run's model reads."""
    features, read = run.features(catalogue), run.options.modalities
    has = {
        "image": features.pictured,
        "title": features.titled,
        "attributes": features.attribute_start[1:] > features.attribute_start[:-1],
    }
    known: np.ndarray = np.logical_or.reduce([has[one] for one in read])
    return known


@contextmanager
def rows_for(run: CategoryRun, catalogue: Catalogue, beside: Path) -> Iterator[np.ndarray | csr_array]:
    """Make rows of products; of very many in a file beside ``beside``, which is removed after their use."""
    features = run.features(catalogue)
    if len(catalogue) <= _HELD:
        yield product_rows(run.model, features)
        return
    beside.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".rows-", dir=beside.parent) as folder:
        rows = product_embeddings(
            run.model, features, Path(folder) / "rows", data=catalogue.fingerprint, about={}
        )
        yield rows.rows


def index_products(
    run: CategoryRun,
    catalogue: Catalogue,
    folder: Path,
    split: str,
    *,
    engine: str,
    settings: Mapping[str, Any],
    about: Mapping[str, Any],
) -> Index:
    """Build and save an index of products; recall is measured on categories, which it will be queried with.

    Args:
        split: what the catalogue is of.
        settings: of the engine.
        about: what the index says besides.
    """
    declared = ENGINES.get(engine)
    check_replaceable(folder, "index.json")
    folder.parent.mkdir(parents=True, exist_ok=True)
    queries = run.model.category_rows(run.category_features(range(min(1000, len(run.tree)))))
    if declared.filters:
        settings = {**settings, "records": product_records(catalogue)}
    of_rows = {"dataset": catalogue.name, "split": split, "model": run.about["model"]}
    with tempfile.TemporaryDirectory(prefix=".rows-", dir=folder.parent) as rows:
        place, features = Path(rows) / "rows", run.features(catalogue)
        embedded = product_embeddings(run.model, features, place, data=catalogue.fingerprint, about=of_rows)
        built = build_index(embedded, engine, sample=queries, **settings)
        built.about |= about
        built.save(folder)
    return built


def product_records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what searches can be restricted by: title, all categories above, whether there is an image."""
    tree, records = catalogue.tree, []
    for product, title in enumerate(catalogue.titles):
        places = catalogue.places_of(product).tolist()
        above = {tree.text(int(node)) for place in places for node in tree.ancestors(place)}
        pictured = bool(catalogue.pictured[product])
        records.append({"title": title, "categories": sorted(above), "pictured": pictured})
    return records


def pick_about(
    run: CategoryRun, catalogue: Catalogue, source: Mapping[str, Any], split: str | None, *, own: bool
) -> dict[str, Any]:
    """Return the metadata of picks."""
    return {
        "ranker": run.model.describe(),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        "run": str(run.folder.resolve()),
        "data": source,
        "split": split,
        "trained_on": count_trained_on(run, catalogue, own=own),
    }


def pick_with(
    run: CategoryRun,
    catalogue: Catalogue,
    beside: Path,
    k: int,
    among: Among,
    distinct: Sequence[Distinct],
    about: dict[str, Any],
) -> Picks:
    """Pick the best ``k`` images for every category of the products' tree."""
    texts = category_texts(catalogue.tree, range(len(catalogue.tree)), run.options.query)
    categories = run.model.category_rows(run.category_features(texts))
    with rows_for(run, catalogue, beside) as rows:
        return pick_rows(
            categories, rows, catalogue, k, texts=texts, among=among, distinct=distinct, about=about
        )


def evaluate_catalogue(
    catalogue: Catalogue, maker: FeatureMaker, out: Path, **options: Any
) -> tuple[ModelsEvaluation, Catalogue]:
    """Train on the split ``train``, choose epochs by the validation split if there is one, rank the split ``test``."""
    from diptych.commerce.category_to_image.evaluation import evaluate_models

    train, test = training_part(catalogue, "test")
    validation = validation_part(catalogue)
    return evaluate_models(train, validation, test, maker, out, missing="none", **options), test


def evaluate_run(
    run: CategoryRun, catalogue: Catalogue, out: Path, *, about: Mapping[str, Any], **options: Any
) -> tuple[ModelsEvaluation, Catalogue]:
    """Measure a run on the products that it has not seen: its own test split, or products of elsewhere."""
    from diptych.commerce.category_to_image.evaluation import evaluate_given
    from diptych.commerce.category_to_image.evaluation.evaluate import chosen_settings

    test, note = held_out(run.splits, catalogue)
    seen = None
    if run.about["catalogue"] == catalogue.fingerprint:
        rows = [row for row, name in enumerate(catalogue.ids) if run.splits.get(name) == "train"]
        epochs = run.options.epochs if run.options.resample else 0
        mask = seen_nodes(catalogue.subset(rows), run.options.setting, run.options.seed, epochs=epochs)
        seen = dict.fromkeys(chosen_settings(options["settings"]), mask)
    texts = category_texts(test.tree, range(len(test.tree)), run.options.query)
    found = evaluate_given(
        run.model,
        test,
        run.features(test),
        run.category_features(texts),
        out,
        given=f"{run.about['model']} trained on {run.options.setting} categories",
        query=run.options.query,
        seen=seen,
        about={**about, "run": str(run.folder.resolve()), "notes": [*catalogue.notes, *note]},
        **options,
    )
    return found, test


def held_out(splits: Mapping[str, str], catalogue: Catalogue) -> tuple[Catalogue, list[str]]:
    """Return the products that a run did not train on or choose its epoch by, and a note about the others."""
    used = {"train", *VALIDATION}
    rows = [row for row, name in enumerate(catalogue.ids) if splits.get(name) not in used]
    left = len(catalogue) - len(rows)
    if not rows:
        raise UsageError(
            f"the run was trained on all {len(catalogue):,} products of {catalogue.name}",
            "give other products",
        )
    if not left:
        return catalogue, []
    return catalogue.subset(rows), [f"{left:,} products left out that the run was trained or validated on"]


def evaluated_products(found: ModelsEvaluation) -> Catalogue:
    """Read the products that an evaluation ranked; StorageError where they are no longer what they were."""
    try:
        source = found.about["source"]
    except KeyError:
        raise StorageError(f"{found.folder} does not say what data it is of", "evaluate again") from None
    whole = described(CatalogueSource, source, found.folder).catalogue()
    run = found.about.get("run")
    part = whole.split("test") if run is None else held_out(CategoryRun.open(run).splits, whole)[0]
    if part.fingerprint != found.protocol.test:
        raise StorageError("the products are not those that were ranked any more", "evaluate again")
    return part
