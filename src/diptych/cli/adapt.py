"""``diptych adapt``: an encoder and a few pairs of other data to an encoder of that data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import Data, Images, Model, OutFolder, ReaderName, ReaderOptions, SkipBadImages
from diptych.cli.progress import progress
from diptych.cli.sources import DataChoice, Origin, encoder_of
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.encoders.adapted import LinearlyAdapted

__all__ = ["adapt"]


def adapt(
    model: Model,
    data: Data = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="How many pictures with a caption are learned from.")
    ] = 16,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw; fewer pairs of a seed are among more of it.")
    ] = 0,
    split: Annotated[str, typer.Option(help="The part of the data that pairs are drawn from.")] = "train",
    captions: Annotated[str, typer.Option(help="Of each picture: one caption, or all it has.")] = "one",
    method: Annotated[
        str, typer.Option(help="gaussian: in closed form; infonce: by descent on that loss.")
    ] = "gaussian",
    strength: Annotated[
        float | None,
        typer.Option(
            help="The pull towards the encoder as it is: pairs that it is worth (gaussian), or weight of the "
            "penalty (infonce).",
            show_default="chosen by the pairs",
        ),
    ] = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Adapt an encoder to other data with a few pairs: a linear map per side, in seconds.

    The encoder's weights stay as they are. Where the pairs say that it is best as it is, its rows stay so
    too. Test on another split than pairs are drawn from.

    Examples:

      [bold]diptych adapt runs/flickr8k --data fashion --pairs 64 --out adapted[/bold]

      [bold]diptych adapt hf:openai/clip-vit-base-patch32 --data cub --pairs 16 --seed 1 --out adapted[/bold]
    """
    from diptych.core.files import check_replaceable
    from diptych.encoders.dual_encoder import CONFIG_FILE
    from diptych.training.adaptation import adapt_linear

    if out is None:
        raise UsageError("nowhere to write", "name a folder with --out")
    if out.resolve() == Path(model).resolve():
        raise UsageError(f"{out} is what is adapted", "name another folder with --out")
    check_replaceable(out, CONFIG_FILE)  # before the work, not after it
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        encoder, run = encoder_of(model)
        section = choice.section(run)
        part = Origin(model, section, split).collection()
        adapted = adapt_linear(
            encoder,
            part,
            pairs=pairs,
            seed=seed,
            captions=captions,  # type: ignore[arg-type]  # checked there
            method=method,  # type: ignore[arg-type]
            strength=strength,
        )
        adapted.save(out)
    if run is not None and split == run.recipe.data.train and section["path"] == run.recipe.data.path:
        say(f"{model} was trained on these pairs: what it knows by heart says little about new pairs")
    for line in _lines(adapted):
        say(line)
    next_step(f"diptych evaluate {out} --data {data or section['path'] or 'DATA'}")


def _lines(adapted: LinearlyAdapted) -> list[str]:
    about = adapted.about
    which = f"{about['pairs']:,} pairs of {about['dataset']} {about['split']} (seed {about['seed']})"
    losses = about["held_out_losses"]
    lines = []
    if losses:
        said = ", ".join(f"{strength} {loss:.3f}" for strength, loss in losses.items())
        lines.append(f"held-out InfoNCE by strength of the pull: {said}")
    if adapted.maps.is_identity:
        lines.append(f"{which} change nothing: the encoder stays as it is")
    else:
        lines.append(f"adapted on {which}, {about['method']}, strength {about['strength']:g}")
    return lines
