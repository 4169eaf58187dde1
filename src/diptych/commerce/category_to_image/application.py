"""Training on a catalogue, and applying a run to one: images, indexes, searches, evaluations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import field_validator, model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, CategoryText, category_texts, judge
from diptych.commerce.catalogue.making import catalogue_of, seen_nodes
from diptych.commerce.catalogue.source import (
    VALIDATION,
    ProductData,
    SortedData,
    read_again,
    training_part,
    used_part,
    validation_part,
)
from diptych.commerce.category_to_image.features import EncoderSpec, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.picking import PICKS, Among, Picks, pick_rows
from diptych.commerce.category_to_image.rankers import RANKERS, product_embeddings, product_rows
from diptych.commerce.category_to_image.runs import CategoryRun, encoder_name
from diptych.commerce.category_to_image.tables import run_tables
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.options import Options, parameter, parse_values
from diptych.core.table import Table
from diptych.data.products import paths_of
from diptych.data.source import OutOption, SamplesOption, TargetOption
from diptych.encoders.embeddings import check_still_there
from diptych.index import ENGINES, Index, build_index
from diptych.index.searcher import OF_PRODUCTS, Found, Hit, best_of, image_path, query_type
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from diptych.commerce.category_to_image.results import ModelsEvaluation
    from diptych.evaluation.result import Result

SETTINGS = "diptych.commerce.catalogue:SETTINGS"

_HELD = 100_000
"""Of more products rows go to a file while they are used."""


class HeadOptions(TargetOption):
    """How heads over frozen encoders are trained."""

    query: Literal["name", "path", "unique"] | None = parameter(
        None,
        "A category's text: name, whole path, or unique: the path where categories share a name.",
        metavar="FORM",
        default="unique; name with --published",
    )
    published: bool = parameter(False, "As in the thesis: τ = 1, no dropout, …")
    set_: list[str] = parameter([], "KEY=VALUE of training, e.g. epochs=10. Repeatable.", "--set")

    @property
    def text(self) -> CategoryText:
        """Return how categories are named."""
        return self.query or ("name" if self.published else "unique")

    def training(self, base: Mapping[str, Any], seed: str) -> TrainOptions:
        """Return the options of training over ``base``; ``seed`` is the option that seeds come from."""
        values = parse_values(self.set_, "--set")
        named = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": seed}
        for key in values.keys() & named.keys():
            raise UsageError(f"--set {key}", f"say it with {named[key]}")
        return TrainOptions.read({**base, **values}, "options of the training")


class TrainHeads(HeadOptions):
    """What is trained; a folder of an unfinished training is resumed."""

    model: str = parameter("clip-ita", "clip- and what it reads: i(mage), t(itle), a(ttributes).")
    setting: str = parameter(
        "all",
        "A product's category: all (one drawn in each epoch), most-specific or most-general.",
        names=SETTINGS,
    )
    seed: int = parameter(0, "Of weights, order and draws.", ge=0)

    def chosen(self) -> TrainOptions:
        """Return the options of the training."""
        from diptych.commerce.category_to_image.evaluation import trained_options

        base = trained_options(self.model, self.setting, self.published).model_dump()
        own = {
            "query": self.text,
            "seed": self.seed,
            "resample": self.setting == "all" and not self.published,
        }
        return self.training(base | own, "--seed")


@dataclass(frozen=True)
class CatalogueTraining:
    """A run, what it was trained on, and how it does on the test products."""

    run: CategoryRun
    catalogue: Catalogue
    features: ProductFeatures  # of the products that it was trained on
    tested: Result | None  # None where there are no test products with a category

    def tables(self) -> list[Table]:
        """Return the measures of the test products."""
        return run_tables(self.run, self.tested)

    def lines(self) -> list[str]:
        """Return what was trained on how much, which encoders made the rows, and which epoch was taken."""
        run, catalogue, about = self.run, self.catalogue, self.run.model.about
        image, text = (run.about["encoders"][side] for side in ("image", "text"))
        split_by = run.about["data"].get("split_by")
        sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
        lines = [catalogue.describe(), *(f"  {note}" for note in catalogue.notes)]
        lines.append(f"splits: {sizes}{f', by {split_by}' if split_by else ''}")
        if unreadable := int(self.features.about.get("unreadable_pictures") or 0):
            lines.append(f"{unreadable:,} pictures to train on cannot be read: their products stand without")
        shown = encoder_name(image) if image else "none, the model needs none"
        lines.append(f"text encoder: {encoder_name(text)}; image encoder: {shown}")
        lines += [_STAND_INS[one["kind"]] for one in (image, text) if one and one.get("kind") in _STAND_INS]
        left, chosen, best = about["without_category"], about["chosen_by"], about["best_epoch"]
        skipped = f", {left:,} without a category left out" if left else ""
        lines.append(f"{run.describe()}: trained on {about['products']:,} products{skipped}")
        last = about["metrics"][best - 1]
        why = f"the best by {chosen} of validation products" if chosen else "the last"
        measured = f", {chosen} {100 * last[chosen]:.2f} %" if chosen else ""
        return [*lines, f"epoch {best} of {about['epochs']}, {why}: loss {last['loss']:.4f}{measured}"]


_STAND_INS = {
    "grid": "  the grid sees colours and edges alone: better pictures with --image-encoder backbone:NAME or hf:NAME",
    "lsa": "  lsa knows the words of the training products alone: better texts with --text-encoder sentence:NAME",
}


def train_catalogue(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> CatalogueTraining:
    """Train on the split ``train``, choose the epoch by the validation split if there is one; killed, it resumes."""
    from diptych.commerce.category_to_image.training import train
    from diptych.training.run import TrainingFolder

    chosen, out = options.chosen(), options.out
    TrainingFolder(out).check({}, beside=(), whole=False)
    catalogue, source = products.read_products()
    maker = encoders.maker(catalogue, chosen.modalities)
    [learned], validated = training_part(catalogue), validation_part(catalogue)
    features = maker.products(learned, missing="none")
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), chosen.query))
    validation = None if validated is None else (validated, maker.products(validated, missing="none"))
    trained = train(learned, features, categories, chosen, out, validation=validation)
    run = CategoryRun.finish(out, trained, maker, catalogue, source.model_dump(mode="json"))
    return CatalogueTraining(run, catalogue, features, _tested(run, catalogue))


def _tested(run: CategoryRun, catalogue: Catalogue) -> Result | None:
    from diptych.commerce.category_to_image.measuring import measure_ranker

    part = catalogue.split("test") if "test" in catalogue.split_sizes else None
    if part is None or not bool((part.place >= 0).any()):
        return None
    judged = judge(part, run.options.setting, "label", run.options.seed)
    about = {"dataset": catalogue.name, "split": "test"}
    categories = run.category_features(judged.nodes)
    return measure_ranker(run.model, run.features(part), categories, judged, about=about)


def own_products(run: CategoryRun) -> Catalogue:
    """Return the products that a run was trained on, with their splits; later ones are of the split ``new``."""
    catalogue: Catalogue = read_again(run.about["data"], run.folder)
    splits = run.splits
    return replace(catalogue, splits=[splits.get(name, "new") for name in catalogue.ids])


class OtherData(SortedData):
    """Which products a run is used on; without ``data`` those that it was trained on."""

    @field_validator("data", "images", "taxonomy")
    @classmethod
    def _whole(cls, path: Path | None) -> Path | None:
        return path and path.resolve()

    def catalogue(
        self, run: CategoryRun, split: str | None = None, own_tree: bool = True
    ) -> tuple[Catalogue, dict[str, Any]]:
        """Read the products of a split, attributes as the run does; return also how they were read.

        They are sorted into the tree of their taxonomy, with ``own_tree`` into their own where any product has a
        category, else into the run's.
        """
        if self.data is None:
            if self != OtherData(unknown=self.unknown):
                fix = "name the products after the run, or leave them out"
                raise UsageError("options of data, but no data", fix)
            return used_part(own_products(run), split), dict(run.about["data"])
        form = run.about["data"].get("attribute_form", "named")
        source = self.source(attribute_form=form, split_by="given")
        collection = source.collection()
        sorted_already = own_tree and any(paths_of(record) for record in collection.records or ())
        if source.taxonomy is not None or sorted_already:
            return used_part(source.catalogue(), split), source.model_dump(mode="json")
        catalogue = catalogue_of(collection, tree=run.tree, attribute_form=form, unknown="none")
        about = {"data": source.data, "reader": source.reader, "tree": "the run's"}
        return used_part(catalogue, split), about


class PartOptions(OutOption):
    """Which of the products, and where results are written."""

    split: str | None = parameter(None, "Only the products of this split, e.g. test.")


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
        "attributes": features.present("attributes"),
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


class IndexOptions(PartOptions):
    """What is indexed, and how; written to RUN/index-ENGINE by default."""

    engine: str = parameter(
        "exact",
        "How it is searched; diptych info lists engines for dense rows.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


class ProductSource(Options):
    """Which run and products an index is of, as it says."""

    run: Path
    other: OtherData
    split: str | None = None


def index_products(run: CategoryRun, data: OtherData, options: IndexOptions, folder: Path) -> list[str]:
    """Build and save an index of products; return lines about it. Recall is measured on categories, as queries are."""
    engine, split = ENGINES.get(options.engine), options.split
    settings = parse_values(options.option, "--option")
    catalogue, _ = data.catalogue(run, split)
    check_replaceable(folder, "index.json")
    folder.parent.mkdir(parents=True, exist_ok=True)
    queries = run.model.category_rows(run.category_features(range(min(1000, len(run.tree)))))
    if engine.filters:
        settings["records"] = product_records(catalogue)
    about = {"dataset": catalogue.name, "split": split or "all", "model": run.about["model"]}
    with tempfile.TemporaryDirectory(prefix=".rows-", dir=folder.parent) as rows:
        place, features = Path(rows) / "rows", run.features(catalogue)
        embedded = product_embeddings(run.model, features, place, data=catalogue.fingerprint, about=about)
        built = build_index(embedded, engine.name, sample=queries, **settings)
        source = ProductSource(run=run.folder.resolve(), other=data, split=split)
        built.about[OF_PRODUCTS] = source.model_dump(mode="json")
        built.save(folder)
    lines = [f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {folder}"]
    if "recall" in built.about:
        recall = built.about["recall"]
        exact = f"recall@{recall['k']} against exact on {recall['queries']} categories"
        lines.append(f"{exact}: {recall['value']:.3f}")
    return lines


def product_records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what searches can be restricted by: title, all categories above, whether there is an image."""
    tree, records = catalogue.tree, []
    for product, title in enumerate(catalogue.titles):
        places = catalogue.places_of(product).tolist()
        above = {tree.text(int(node)) for place in places for node in tree.ancestors(place)}
        pictured = bool(catalogue.pictured[product])
        records.append({"title": title, "categories": sorted(above), "pictured": pictured})
    return records


class PickOptions(PartOptions):
    """Which images are picked, and how they are shown; written to RUN/picks by default."""

    k: int = parameter(8, "Images per category.", "-k", ge=1)
    among: Among = parameter("all", "members: only of products in it or below.")
    beyond: bool = parameter(False, "Fill up to -k where a category has fewer products.")
    distinct: list[str] = parameter([], "content or title: equal ones are picked once. Repeatable.")
    sheet: bool = parameter(True, "Write the tree's contact sheet.")
    side: int = parameter(112, "Longest side of its images, in pixels.", ge=16, le=640)


def pick_images(run: CategoryRun, data: OtherData, options: PickOptions, folder: Path) -> Picks:
    """Pick the best images for every category of the products' tree; large arrays lie beside ``folder`` meanwhile."""
    check_replaceable(folder, PICKS)
    catalogue, source = data.catalogue(run, options.split)
    texts = category_texts(catalogue.tree, range(len(catalogue.tree)), run.options.query)
    categories = run.model.category_rows(run.category_features(texts))
    about = {
        "ranker": run.model.describe(),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        "run": str(run.folder.resolve()),
        "data": source,
        "split": options.split,
        "trained_on": count_trained_on(run, catalogue, own=data.data is None),
    }
    how: dict[str, Any] = options.model_dump(include={"k", "among", "beyond", "distinct"})
    with rows_for(run, catalogue, folder) as rows:
        return pick_rows(categories, rows, catalogue, texts=texts, about=about, **how)


class EvaluateOptions(HeadOptions, SamplesOption):
    """Which models are measured, and how."""

    model: list[str] = parameter(
        [], "bm25, clip, sentence, clip-i … clip-ita, mixed. Repeatable.", default="all possible but mixed"
    )
    setting: list[str] = parameter(
        [], "all, most-general, most-specific. Repeatable.", names=SETTINGS, default="all three"
    )
    seeds: int = parameter(3, "Trainings of each model.", ge=1)
    run: Path | None = parameter(None, "Measure a run on the products that it has not seen.")
    relevance: Literal["label", "path"] = parameter("label", "path: the categories above are right, too.")
    judged_seed: int = parameter(0, "Of categories drawn in the setting all.", ge=0)
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        if self.published and self.set_:
            raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
        fitting = ("model", "query", "published", "set_", "seeds", "jobs")
        fields = type(self).model_fields
        if self.run is not None and any(getattr(self, name) != fields[name].default for name in fitting):
            raise UsageError("a run is measured as it is", "leave out what makes or trains models")
        return self


def evaluate_catalogue(
    products: ProductData, encoders: EncoderSpec, options: EvaluateOptions
) -> tuple[ModelsEvaluation, Catalogue]:
    """Train on the split ``train``, choose epochs by the validation split if there is one, rank the split ``test``.

    A run that was trained before is measured on the products that it has not seen.
    """
    from diptych.commerce.category_to_image.evaluation import evaluate_models

    if options.run is not None and encoders != EncoderSpec():
        raise UsageError("a run is measured as it is", "leave out the encoders")
    catalogue, source = products.read_products()
    asked = encoders.given if options.run is None else []
    common: dict[str, Any] = {
        "settings": _names(options.setting),
        **options.model_dump(include={"relevance", "judged_seed"}),
        "bootstrap": Bootstrap(options.samples),
        "about": {"source": source.model_dump(mode="json"), "encoders asked for": asked},
    }
    if options.run is not None:
        return _evaluate_run(CategoryRun.open(options.run), catalogue, options.out, **common)
    models, splits = _names(options.model), catalogue.split_sizes
    train, validation, test = None, None, catalogue
    if models and set(models) <= set(RANKERS) and not {"train", "test"} <= set(splits):
        test = catalogue.split("test") if "test" in splits else catalogue  # baselines need no more
    else:
        validation, (train, test) = validation_part(catalogue), training_part(catalogue, "test")
    maker = encoders.maker(catalogue)
    common |= {
        "models": models,
        "seeds": tuple(range(options.seeds)),
        "options": options.training({}, "--seeds") if options.set_ else None,
        "query": options.text,
        **options.model_dump(include={"published", "jobs"}),
    }
    return evaluate_models(train, validation, test, maker, options.out, missing="none", **common), test


def _names(given: list[str]) -> list[str] | None:
    """Return the names of an option that may be repeated or have commas; None when it was not given."""
    return [name for text in given for name in text.split(",") if name] if given else None


def _evaluate_run(
    run: CategoryRun, catalogue: Catalogue, out: Path, *, about: Mapping[str, Any], **options: Any
) -> tuple[ModelsEvaluation, Catalogue]:
    from diptych.commerce.category_to_image.evaluation import chosen_settings, evaluate_models

    test, note = held_out(run.splits, catalogue)
    seen = None
    if run.about["catalogue"] == catalogue.fingerprint:
        rows = [row for row, name in enumerate(catalogue.ids) if run.splits.get(name) == "train"]
        epochs = run.options.epochs if run.options.resample else 0
        mask = seen_nodes(catalogue.subset(rows), run.options.setting, run.options.seed, epochs=epochs)
        seen = dict.fromkeys(chosen_settings(options["settings"]), mask)
    found = evaluate_models(
        None,
        None,
        test,
        run.maker,
        out,
        given=(run.model, f"{run.about['model']} trained on {run.options.setting} categories"),
        query=run.options.query,
        seen=seen,
        missing="none",
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
    whole = read_again(source, found.folder)
    run = found.about.get("run")
    if whole.fingerprint == found.protocol.test:
        return whole
    part = whole.split("test") if run is None else held_out(CategoryRun.open(run).splits, whole)[0]
    if part.fingerprint != found.protocol.test:
        raise StorageError("the products are not those that were ranked any more", "evaluate again")
    return part


_NAMED = 3  # categories of one name that are spelt out
_MARKS = {True: "✓", False: "✗", None: ""}


class ProductSearcher:
    """An index of products with the run that embedded them."""

    kind, note = "product", ""

    def __init__(self, index: Index, run: CategoryRun, catalogue: Catalogue) -> None:
        self.index, self.run, self.catalogue = index, run, catalogue
        self.rows = {name: row for row, name in enumerate(catalogue.ids)}

    @classmethod
    def open(cls, index: Index, folder: Path) -> Self:
        """Open what the index of a folder says it was made of."""
        if OF_PRODUCTS not in index.about:
            fix = "make one: diptych categories index RUN, or leave --category out"
            raise UsageError(f"{folder} is no index of products", fix)
        source = ProductSource.read(index.about[OF_PRODUCTS], str(folder), StorageError, "index again")
        check_still_there(str(source.run), folder)
        run = CategoryRun.open(source.run)
        return cls(index, run, source.other.catalogue(run, source.split)[0])

    def find(
        self,
        query: str,
        k: int = 10,
        *,
        least: float | None = None,
        own_terms: bool = False,
        paths: bool = False,
        **options: Any,
    ) -> list[Found]:
        """Search for a category of the products' tree, by name or path, or for any words."""
        if own_terms:
            raise UsageError("--own-terms is of searches for images", "leave it out")
        if query_type(query) != "text":
            raise UsageError(
                f"{query!r} is an image or vectors; products are found by words", "give a category's name"
            )
        run, tree = self.run, self.catalogue.tree
        meant, words = tree.meant(query), query
        if len(meant) == 1 and run.options.query != "name":  # as the run knows categories
            words = category_texts(tree, meant, run.options.query)[0]
        vectors = run.model.category_rows(run.category_features([words]))
        best, after = best_of(
            self.index.search(vectors, k, encoder=run.model.fingerprint, **options), 0, least
        )
        hits, lines = [], []
        for rank, (name, score) in enumerate(best, 1):
            hit, places = self._described(name, score, set(meant))
            hits.append(hit)
            line = (f"{rank}", f"{score:.3f}", name, _MARKS[hit.right], hit.text, places)
            lines.append((*line, hit.path) if paths else line)
        columns = ("rank", "score", "id", "", "title", "category", *(["path"] if paths else []))
        title = f"products for {query!r}" + (f", encoded as {words!r}" if words != query else "")
        notes = [legend(tree, query, meant)]
        seen = sum(run.splits.get(hit.name) == "train" for hit in hits)
        if meant and seen:
            known = f"the run was trained on {seen:,} of these {len(hits):,}"
            notes.append(f"{known}: what is right among them flatters it")
        return [Found(query, hits, Table.of(title, after, columns, lines), notes)]

    def _described(self, name: str, score: float, meant: set[int]) -> tuple[Hit, str]:
        """Return a hit with title and image, and the texts of its categories."""
        shop = self.catalogue
        if name not in self.rows:
            message = f"the index finds {name!r}, which {shop.name} no longer holds"
            raise DataError(message, "index the products again")
        row = self.rows[name]
        right = shop.is_in(row, meant) if meant else None
        image, read, path = int(shop.picture_rows[row]), None, ""
        if image >= 0:
            read, path = partial(shop.collection.image, image), image_path(shop.collection, image)
        hit = Hit(name, score, shop.titles[row], path, read, right)
        return hit, "; ".join(map(shop.tree.text, shop.places_of(row).tolist()))


def legend(tree: CategoryTree, query: str, meant: list[int]) -> str:
    """Return what the marks mean."""
    if not meant:
        return f"{query!r} is no category of the tree: nothing found is right or wrong"
    texts = [tree.text(node) for node in meant[:_NAMED]]
    more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
    return f"✓ sorted into {' or '.join(texts)}{more}, or below it; ✗ elsewhere; no mark: without a category"
