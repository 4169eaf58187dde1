"""Evaluations, datasets and encoders for the field's other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.api.evaluating import is_run
from diptych.api.opening import AnyEncoder, load, read, shown
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.encoders.mteb import MtebEncoder


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
    from diptych.api import formats
    from diptych.encoders.embeddings import read_data
    from diptych.evaluation.result import Result
    from diptych.training.folders import the_evaluation

    target = None if out is None else Path(out)
    named = getattr(source, "loaded_from", None) or getattr(source, "folder", source)
    path = Path(named) if isinstance(named, str | Path) else None
    if to in formats.DATASET_FORMS:
        if path is not None and is_run(path):
            from diptych.training.run import Run

            data = Run.open(path).recipe.data
            whole, split = read_data(data.model_dump(mode="json")), split or data.test
        else:
            whole = read(source)
        return formats.export_collection(to, *whole.part(split), target)[0]
    if to not in formats.EVALUATION_FORMS:
        raise UnknownNameError("form of an export", to, formats.EVALUATION_FORMS + formats.DATASET_FORMS)
    if isinstance(source, Result) and to == "model-card":
        return formats.write_model_card(source, formats.needed(target))
    if path is None:
        text = f"a {type(source).__name__} in memory cannot be written as {to}"
        raise UsageError(text, "give the folder of a run or of an evaluation: dp.evaluate(…, out=FOLDER)")
    folder = the_evaluation(path, how.pop("evaluation", None))
    return formats.export_evaluation(to, folder, target, **how)[0]


def as_mteb(encoder: AnyEncoder) -> MtebEncoder:
    """Return an encoder as one of mteb 2, of images, texts, or both: ``mteb.evaluate(dp.as_mteb("runs/x"), tasks)``.

    >>> dp.as_mteb("runs/x").mteb_model_meta.embed_dim == dp.load("runs/x").width
    True
    """
    from diptych.encoders.mteb import MtebEncoder

    return MtebEncoder(load(encoder))
