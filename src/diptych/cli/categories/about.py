"""What ``diptych info`` says of the folders that ``diptych categories`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import StorageError
from diptych.core.reading import read_json

if TYPE_CHECKING:
    from diptych.index import Index

Rows = list[tuple[str, object]]


def about_categories(path: Path) -> Rows | None:
    """Of a run, an evaluation, picks, a tree's file or suggestions; None of anything else."""
    try:
        if (path / "category_run.json").is_file():
            return _run(path)
        if (path / "category_evaluation.json").is_file():
            return _evaluation(path)
        if (path / "picks.json").is_file():
            return _picks(path, read_json(path / "picks.json"))
        if path.name.endswith(".summary.json"):
            return _filled(read_json(path))
        if path.suffix in (".jsonl", ".csv") and (content := path.with_suffix(".summary.json")).is_file():
            return _filled(read_json(content))
    except (AttributeError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is damaged: {error!r}", "make it again") from None
    return None


def about_products_index(index: Index) -> Rows:
    """Of an index of products, how it came about; nothing of another one."""
    from diptych.cli.categories.index import CATEGORY

    content = index.about.get(CATEGORY)
    if not isinstance(content, dict):
        return []
    return [
        ("products of", content["other"]["data"] or "the run's data"),
        ("run", content["run"]),
        *_split(content),
    ]


def _run(path: Path) -> Rows:
    from diptych.commerce.category_to_image.runs import CategoryRun, encoder_name

    run = CategoryRun.open(path)
    about, options = run.about, run.about["options"]
    encoders = about["encoders"]
    return [
        ("kind", "category run"),
        ("model", f"{about['model']} {about['fingerprint']}"),
        ("trained on", f"{options['setting']} categories by {options['query']}, seed {options['seed']}"),
        ("epochs", len(run.metrics)),
        ("data", about["data"]["data"]),
        ("products", ", ".join(f"{name} {count:,}" for name, count in about["splits"].items())),
        ("tree", run.tree.describe()),
        *((f"{what} encoder", encoder_name(encoders[what])) for what in ("image", "text")),
        *(("note", note) for note in about["notes"]),
        ("made with", f"diptych {about['diptych']}"),
    ]


def _evaluation(path: Path) -> Rows:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

    found = ModelsEvaluation.open(path)
    page = path / "report.html"
    return [
        ("kind", "evaluation of categories and products"),
        ("data", found.about["data"]),
        ("encoders", found.about["encoders"]),
        ("models", ", ".join(found.models)),
        ("settings", ", ".join(found.settings)),
        ("protocol", found.protocol.line()),
        *(("note", note) for note in found.notes),
        ("page", page if page.is_file() else f"none yet: diptych report {path}"),
    ]


def _picks(path: Path, content: Any) -> Rows:
    about, sheet = content["about"], path / "tree.html"
    return [
        ("kind", "pictures for categories"),
        ("products", f"{content['catalogue']['products']:,} of {content['catalogue']['name']}"),
        *_split(about),
        ("run", about.get("run", "none")),
        ("for each", f"{content['k']} of {content['among']}, distinct {', '.join(content['distinct'])}"),
        *((name, f"{count:,}") for name, count in content["counts"].items()),
        ("page", sheet if sheet.is_file() else "none: diptych categories pick draws it"),
    ]


def _filled(content: Any) -> Rows | None:
    if not isinstance(content, dict) or "counts" not in content or "calibration" not in content:
        return None
    return [
        ("kind", "suggested categories"),
        ("run", content["run"]),
        ("data", content["data"]["data"]),
        *_split(content),
        ("products", f"{content['products']:,}"),
        *((f"  {name}", f"{count:,}") for name, count in content["counts"].items()),
        ("threshold", content["threshold"]),
        (
            "temperature",
            f"{content['calibration']['temperature']:.4g}, of split {content['calibration']['split']}",
        ),
    ]


def _split(content: dict[str, Any]) -> Rows:
    return [("split", content["split"])] if content.get("split") else []
