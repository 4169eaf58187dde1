"""``diptych adapt``: fit an encoder to other data with a few pairs."""

from pathlib import Path
from typing import Literal

from diptych.cli.console import next_step, show
from diptych.cli.sources import Model, named, run_of
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.source import DataSpec, TargetOption


class AdaptOptions(TargetOption):
    """The pairs to learn from, and how."""

    pairs: int = parameter(16, "How many images with a caption are learned from.", ge=0)
    seed: int = parameter(0, "Of the draw; with one seed, fewer pairs are a subset of more.", ge=0)
    split: str = parameter("train", "The part of the data that pairs are drawn from.")
    captions: Literal["one", "all"] = parameter("one", "Of each image.")
    method: Literal["gaussian", "infonce"] = parameter(
        "gaussian", "gaussian: in closed form; infonce: by descent on that loss."
    )
    strength: float | None = parameter(
        None,
        "The pull towards the encoder as it is: pairs that it is worth (gaussian), or weight of the "
        "penalty (infonce).",
        default="chosen by the pairs",
    )


def adapt(model: Model, data: DataSpec, options: AdaptOptions) -> None:
    """Adapt an encoder to other data with a few pairs: a linear map per side, in seconds.

    The encoder's weights are not changed; if the pairs show no gain, neither are its embeddings. Test on another
    split than the one that pairs are drawn from.

    Examples:
        diptych adapt runs/coco --data shop.csv --pairs 64 --out adapted
        diptych adapt hf:NAME --data cub --pairs 16 --seed 1 --out adapted
    """
    from diptych.core.files import check_replaceable
    from diptych.encoders.dual_encoder import CONFIG_FILE
    from diptych.training.adaptation import adapt_linear

    out = options.out
    if out.resolve() == Path(model).resolve():
        raise UsageError(f"{out} is what is adapted", "name another folder with --out")
    check_replaceable(out, CONFIG_FILE)  # before the work, not after it
    named_data, run = named(model, data, options.split), run_of(model)
    origin, whole = named_data.opened
    part = whole if origin.split is None else whole.split(origin.split)
    adapted = adapt_linear(named_data.encoder, part, **options.model_dump(exclude={"out", "split"}))
    adapted.save(out)
    if run is not None and options.split == run.recipe.data.train and named_data.is_own(origin):
        show(f"{model} was trained on these pairs: what it knows by heart says little about new pairs")
    show(*adapted.lines())
    test = data.data or origin.data.get("path")
    scenes = ["diptych", "data", "scenes", "--out", "scenes"]
    next_step(["diptych", "evaluate", out, "--data", test] if test else scenes)
