"""Evaluations of runs: what a run is evaluated and audited with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from diptych.analysis.cocos import check_counting, cocos_over
from diptych.analysis.cocos_report import CocosOptions, CocosReport
from diptych.analysis.information.audit import Audit
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name
from diptych.core.options import parse_values
from diptych.data.batches import BatchPlan
from diptych.data.collection import Collection
from diptych.data.scenes import scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection, read_data
from diptych.encoders.family import resolve
from diptych.evaluation.options import AuditOptions
from diptych.evaluation.shortcuts import USUAL, audit_encoder
from diptych.objectives import OBJECTIVES, Objective
from diptych.objectives.declaration import as_objective
from diptych.objectives.similarity import similarity_of
from diptych.training.recipe import Recipe, collection_of
from diptych.training.run import Run, trained_objective
from diptych.training.sections import Batches


def shortcuts_to_evaluate(
    recipe: Recipe, collection: Collection, begun_with: Mapping[str, Any] | None = None
) -> Shortcuts | None:
    """Return the shortcuts that a run's encoder is evaluated with; None for none, and for those on one side."""
    options = recipe.shortcuts
    if options is None or not (options.on_images and options.on_captions):
        return None
    shortcuts = Shortcuts.of(options, collection, recipe.data.train, recipe.seed)
    check_digits(shortcuts, begun_with)
    return shortcuts


def check_digits(shortcuts: Shortcuts, begun_with: Mapping[str, Any] | None) -> None:
    """Refuse images of digits other than those that a run was begun with."""
    if begun_with is None:
        return
    trained_on, these = (metadata.get("digits") for metadata in (begun_with, shortcuts.describe()))
    if trained_on != these:
        raise MismatchError(
            f"the run was trained on digits {trained_on}, these are {these}",
            "put the old file of digits back",
        )


def audit_run(
    run: Run | Path | str,
    collection: Collection | None = None,
    folder: Path | str | None = None,
    own_probes: bool = False,
    **options: Any,
) -> Audit:
    """Audit a run's best encoder on the splits it was trained, chosen and tested on, or on other data.

    Other data is audited with and without the run's shortcuts, as its own data is: the numbers are rows of
    that data. Its splits are those that the run's data has, or train, val and test where it lacks one.

    Args:
        collection: all splits; the run's own data when not given.
        folder: where embeddings are kept; the run's own ``embeddings`` when not given.
        own_probes: probes are of the run's own data, and ``collection`` is tested: its test split, or all of it.
        options: as of :func:`audit_encoder`.
    """
    if not isinstance(run, Run):
        run = Run.open(run)
    if not run.best.is_dir():
        raise UsageError(
            f"{run.folder} has no trained encoder yet", f"resume with: diptych train --resume {run.folder}"
        )
    data, recipe = run.recipe.data, run.recipe
    whole = collection_of(data) if collection is None else collection
    splits = (data.train, data.validation, data.test)
    if own_probes and collection is not None:
        part = collection.split(data.test) if data.test in collection.split_sizes else collection
        options, collection, whole = {**options, "tested": part}, None, collection_of(data)
    if collection is not None and not set(splits) <= set(collection.split_sizes):
        splits = USUAL
    shortcuts = None
    if recipe.shortcuts is not None and recipe.shortcuts.setup != "none" and not own_probes:
        shortcuts = Shortcuts.of(recipe.shortcuts, whole, splits[0], recipe.seed)
        check_digits(shortcuts, run.begun_with.get("shortcuts"))
    return audit_encoder(
        DualEncoder.load(run.best),
        whole,
        run.folder / "embeddings" if folder is None else folder,
        splits=splits,
        shortcuts=shortcuts,
        **options,
    )


def audit_named(sources: Sequence[str], options: AuditOptions) -> Iterator[tuple[str, Path, Audit]]:
    """Audit runs and encoders, one after the other; yield a short name, the folder of what is written, the audit."""
    how: dict[str, Any] = options.model_dump(include={"most", "samples", "seed"})
    how["probes"] = ("linear", "mlp") if options.probe == "both" else (options.probe,)
    for source, (name, target) in zip(sources, _audit_folders(sources, options).items(), strict=True):
        run = Run.open(source) if (Path(source) / "run.json").is_file() else None
        resolve(source)  # a wrong name is found before the data is read, the data before weights are
        if run is not None and options.data is None and not options.scenes:
            yield name, target, audit_run(run, **how)
            continue
        collection, kept = scenes() if options.scenes else read_data(options.section()), target / "embeddings"
        if run is not None:
            yield name, target, audit_run(run, collection, kept, options.own_probes, **how)
        elif options.own_probes:
            raise UsageError(f"{source} is no run: it has no data of its own", "leave --own-probes out")
        else:
            yield name, target, audit_encoder(DualEncoder.load(source), collection, kept, **how)


def _audit_folders(sources: Sequence[str], options: AuditOptions) -> dict[str, Path]:
    """Return a name and a folder for every source: in the source itself where it is a folder.

    An audit of a run on other data than its own has a folder of its own next to that on its own.
    """
    if twice := [source for number, source in enumerate(sources) if source in sources[:number]]:
        raise UsageError(f"{twice[0]} is given twice", "name each once")
    out, folders = options.out, dict[str, Path]()
    other = "scenes" if options.scenes else options.data.stem if options.data is not None else ""
    for source in sources:
        folder = Path(source)
        if not folder.is_dir():
            resolve(source)
            if out is None:
                raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
        name = folder.resolve().name if folder.is_dir() else source.rpartition("/")[2]
        name = source if name in folders else name
        place = folder if out is None else out if len(sources) == 1 else out / safe_name(name)
        is_own = out is not None or not (folder / "run.json").is_file()
        folders[name] = place / "audit" / ("" if is_own else other)
    return folders


def count_contributing(
    run: Run | None,
    options: CocosOptions,
    opened: Callable[[], EncodedCollection],
    loss: Callable[..., Tensor] | None = None,
) -> CocosReport:
    """Count contributing samples over an epoch of batches, drawn as the run drew them where nothing else is given.

    Args:
        run: whose embeddings these are; None for an encoder from elsewhere.
        opened: gives the embeddings, when everything else has been checked.
        loss: counted instead of one that is named; it needs ``per_query``.
    """
    if loss is not None and (options.objective is not None or options.option):
        raise UsageError("both a loss and the name or options of one are given", "give one of them")
    given = None if loss is None else as_objective(loss)
    counting = options.epsilon, options.unit, options.compat
    check_counting(given or _objective(run, options), *counting)  # before the work, not after it
    encoded = opened()
    own = Batches() if run is None else run.recipe.batches
    plan, each = options.plan or own.plan, own.captions_per_image
    size = options.batch_size or own.size
    batches = BatchPlan(encoded.caption_image, len(encoded.images), size, plan, each, options.seed).epoch(0)
    about = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"] or "all",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
    }
    shortcuts = None if run is None else run.recipe.shortcuts
    if shortcuts is not None and shortcuts.setup != "none":
        about["shortcuts"] = f"none, trained with {shortcuts.setup}"
    about |= {"plan": plan, "captions per image": each if plan == "grouped" else None, "seed": options.seed}
    return cocos_over(
        encoded.images.rows,
        encoded.texts.rows,
        batches,
        given or _objective(run, options, encoded.about["encoder"].get("temperature")),
        options.epsilon,
        unit=options.unit,
        compat=options.compat,
        similarity=similarity_of(encoded.similarity),
        about=about,
    )


def _objective(run: Run | None, options: CocosOptions, temperature: float | None = None) -> Objective:
    given = parse_values(options.option, "--option")
    if run is not None and options.objective in (None, run.recipe.objective["name"]):
        return trained_objective(run, **given)
    if options.objective is None:
        names = ", ".join(OBJECTIVES.names())
        raise UsageError("no objective given", f"--objective with one of: {names}")
    kind = OBJECTIVES.get(options.objective)
    # An encoder from elsewhere was trained with a loss that learns its temperature; a run was not, with this.
    if run is None and temperature is not None and "learn_temperature" in kind.options:
        given = {"temperature": temperature, **given}
    return kind(**given)
