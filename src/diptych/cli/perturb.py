"""``diptych data perturb`` and ``shortcuts``: captions that are changed, images and captions with numbers."""

from pathlib import Path
from typing import Self

from pydantic import model_validator

from diptych.analysis.perturbations.declaration import perturbation_tables
from diptych.analysis.perturbations.perturb import CaptionList, PerturbOptions, perturb_list
from diptych.analysis.shortcuts.codes import ShortcutOptions
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.cli.console import next_step, show
from diptych.core.errors import UsageError
from diptych.core.options import command_line, parameter
from diptych.data.source import DataSpec

_FEW_SCENES = {"n_train": 40, "n_val": 10, "n_test": 10}


def perturb(options: PerturbOptions) -> None:
    """Change captions as people mistype, shuffle or reword them, and say what could not be changed and why.

    With --out, one JSONL per perturbation and seed: id, image, caption, perturbed, changed.

    Examples:
        diptych data perturb flickr8k --perturb typos --out typos
        diptych data perturb captions.txt --perturb typos --seeds 3
        diptych data perturb --list
    """
    from diptych.encoders.embeddings import Origin

    if options.list_all:
        show(*perturbation_tables())
        return
    if options.data is None:
        raise UsageError("no captions given", "give a dataset or a .txt file, or --list")
    _ = options.chosen  # before anything is read
    if options.data.suffix.lower() == ".txt" and options.reader is None:
        if options.split is not None or options.captions != "all" or options.images is not None:
            raise UsageError(
                f"{options.data} has only captions", "leave --split, --captions and --images out"
            )
        captions, part, split = CaptionList.of_lines(options.data), None, None
    else:
        whole = Origin("", options.section(), None, options.captions).collection()
        part, split = whole.part(options.split)
        captions = CaptionList.of_collection(part)
    language = options.open(part) if any(one.needs for one in options.chosen[0]) else None
    shown, files = perturb_list(captions, options, language, split)
    show(*shown)
    if options.out is None:
        again = command_line(["diptych", "data", "perturb", options.data], options, left_out={"data"})
        next_step(f"{again} --out perturbed")
    else:
        show(f"written to {options.out}")
        next_step(["less", files[0]])


class SheetOptions(ShortcutOptions, DataSpec):
    """Options of the sheet: shortcuts and images."""

    data: Path | None = parameter(None, "A dataset: folder or file.", argument=True, metavar="DATA")
    scenes: bool = parameter(False, "A few generated scenes instead.")
    seed: int = parameter(0, "Of everything that is drawn.", ge=0)
    size: int = parameter(224, "Side of the image that a tower receives.", ge=8)
    split: str = parameter("train", "The part of the data to show.")
    epoch: int | None = parameter(
        None, "Show numbers as this epoch of training has them, not as evaluation.", ge=1
    )
    pictures: int = parameter(4, "How many images to show.", "--pictures", "-n", ge=1)
    out: Path = parameter(Path("shortcuts.png"), "The PNG to write.", "--out", "-o")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.scenes == (self.data is not None):
            raise UsageError("one source of images is needed", "give a dataset, or --scenes")
        return self


def shortcuts(options: SheetOptions) -> None:
    """Show a few images and captions with synthetic shortcuts: numbers as digits on both.

    Setups: unique numbers on images and captions, only on captions or images, bits drawn at every access, a number
    per caption, or none.

    Examples:
        diptych data shortcuts flickr8k --digits mnist.npz --out sheet.png
        diptych data shortcuts --scenes --setup bits --bits 8 --epoch 1
    """
    from diptych.encoders.embeddings import read_data
    from diptych.report.sheets import write_shortcuts

    chosen = ShortcutOptions(**options.model_dump(include=set(ShortcutOptions.model_fields)))
    whole = read_data({"scenes": _FEW_SCENES} if options.scenes else options.section())
    made = Shortcuts.of(chosen, whole, "train", options.seed)
    made.check_fit(options.size, options.size)
    drawn = options.split, options.size, options.pictures, options.epoch
    cards = write_shortcuts(options.out, made, whole, *drawn)
    show(*(f"{card.name}: {card.text.splitlines()[0] if card.text else 'no captions'}" for card in cards))
    given = {"setup": chosen.setup, **chosen.model_dump(exclude_defaults=True)}
    words = [
        f"--set shortcuts.{key}={str(value).lower() if value is True else value}"
        for key, value in given.items()
    ]
    show(made.line(), f"drawn in {options.out}; to train with these: {' '.join(words)}")
    next_step(["open", options.out])
