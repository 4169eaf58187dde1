"""``diptych data perturb`` and ``shortcuts``: captions that are changed, images and captions with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from diptych.analysis.perturbations import TextPerturbation, choose_perturbations
from diptych.analysis.perturbations import perturb as library
from diptych.analysis.perturbations.declaration import perturbation_tables
from diptych.analysis.perturbations.perturb import CaptionList
from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts, with_ending
from diptych.cli.console import next_step, show
from diptych.cli.sources import DataSpec, LanguageSpec, OutOption, PartSpec, options_by_name
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.encoders.embeddings import Origin
from diptych.encoders.preprocessing import Preprocessing
from diptych.report.document import Card, Gallery
from diptych.report.sheets import write_sheet

_WIDTH, _NARROWEST = 1000, 200  # pixels: of a sheet, about, and of an image that is enlarged
_FEW_SCENES = {"n_train": 40, "n_val": 10, "n_test": 10}


class PerturbOptions(LanguageSpec, PartSpec, OutOption):
    """Which captions are changed, and how."""

    data: Path | None = parameter(
        None, "A dataset: folder or file; or a .txt file with a caption per line.", argument=True
    )
    perturb: list[str] = parameter(
        [],
        "Perturbations or groups of them, text or thesis (its thirteen). Repeatable, or with commas.",
        default="thesis",
        names="diptych.analysis.perturbations:PERTURBATIONS",
    )
    list_all: bool = parameter(False, "Show every perturbation and stop.", "--list")
    set_: list[str] = parameter([], "NAME.KEY=VALUE for a perturbation. Repeatable.", "--set")
    seeds: int = parameter(1, "How often each is drawn anew.", ge=1)
    seed: int | None = parameter(None, "The first seed.", ge=0, default="0, or 42 with --compat published")
    compat: Literal["none", "published"] = parameter(
        "none", "published: as the thesis's code, faults included."
    )
    examples: int = parameter(2, "Of each perturbation, to show.", "--examples", "-n", ge=0)

    def read_captions(self) -> tuple[CaptionList, Collection | None, str | None]:
        """Return the captions, the collection they are of, and which part of it; a text file has neither."""
        if self.data is None:
            raise UsageError("no captions given", "give a dataset or a .txt file, or --list")
        if self.data.suffix.lower() == ".txt" and self.reader is None:
            if self.split is not None or self.captions != "all" or self.images is not None:
                fix = "leave --split, --captions and --images out"
                raise UsageError(f"{self.data} has captions alone", fix)
            return CaptionList.of_lines(self.data), None, None
        part, split = Origin("", self.section(None), None, self.captions).collection().part(self.split)
        return CaptionList.of_collection(part), part, split


def perturb(options: PerturbOptions) -> None:
    """Change captions as people mistype, shuffle or reword them, and say what could not be changed and why.

    With --out, one JSONL per perturbation and seed: id, image, caption, perturbed, changed.

    Examples:
        diptych data perturb flickr8k --perturb typos --out typos
        diptych data perturb captions.txt --perturb typos --seeds 3
        diptych data perturb --list
    """
    if options.list_all:
        show(*perturbation_tables())
        next_step("diptych data perturb DATA --perturb NAME --out FOLDER")
        return
    compat, out = options.compat, options.out
    names = [name.strip() for given in options.perturb or ["thesis"] for name in given.split(",")]
    chosen, left_out = _chosen(names, compat)
    settings = options_by_name(options.set_)
    library.check_perturbations(chosen, settings, compat)
    first = options.seed if options.seed is not None else library.usual_seed(compat)
    whole, collection, part = options.read_captions()
    known = options.open(collection) if any(one.needs for one in chosen) else None
    language = None if known is None else known.line()
    seeds = range(first, first + options.seeds)
    summary, files = library.PerturbationSummary(whole, options.examples), []
    results = summary.watch(
        library.perturbed_over(whole, chosen, seeds=seeds, options=settings, compat=compat, language=known)
    )
    if out is None:
        for _ in results:
            pass
    else:
        about = {"split": part, "compat": compat, "language": language}
        files = library.write_perturbed(out, whole, results, about)
    facts = [f"{whole.name}{'' if part is None else f', {part}'}: {len(whole.ids):,} captions"]
    facts += [] if compat == "none" else [f"compat {compat}"]
    facts += [] if language is None else [f"language {language}"]
    show(*summary.tables(), "; ".join(facts))
    show(*(f"left out, for {why}: {', '.join(which)}" for why, which in left_out.items() if which))
    words = [options.data, *(part for name in names for part in ("--perturb", name))]
    if out is None:
        next_step(["diptych", "data", "perturb", *words, "--out", "FOLDER"])
        return
    show(f"written to {out}")
    next_step(["less", files[0]] if collection is None else ["diptych", "analyse", "stress", "MODEL", *words])


def _chosen(names: Sequence[str], compat: str) -> tuple[list[TextPerturbation], dict[str, list[str]]]:
    """Those that can be done, and of groups' members those that cannot, by the reason why."""
    every = choose_perturbations(names)
    texts = [one for one in every if isinstance(one, TextPerturbation)]
    pictures = [one.name for one in every if not isinstance(one, TextPerturbation)]
    if not texts:
        raise UsageError(f"{', '.join(pictures)}: of pictures, not of captions", "for example --perturb text")
    possible = [one for one in texts if compat != "published" or one.published or one.name in names]
    possible = possible or texts  # none has a published form, which is an error
    unpublished = [one.name for one in texts if one not in possible]
    return possible, {"they change pictures": pictures, "they have no published form": unpublished}


class SheetOptions(ShortcutOptions, DataSpec):
    """Which shortcuts are shown, on which images."""

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

    Setups: unique numbers on images and captions, on captions or images alone, bits drawn at every access, a number
    per caption, or none.

    Examples:
        diptych data shortcuts flickr8k --digits mnist.npz --out sheet.png
        diptych data shortcuts --scenes --setup bits --bits 8 --epoch 1
    """
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    size, chosen = options.size, options.model_dump(include=set(ShortcutOptions.model_fields))
    section = {"scenes": _FEW_SCENES} if options.scenes else options.section(None)
    whole = collection_of(Data.model_validate(section))
    made = Shortcuts.of(ShortcutOptions(**chosen), whole, Data().train, options.seed)
    made.check_fit(size, size)
    cards = _cards(made, whole.split(options.split), options)
    title, columns = f"{whole.name}, {options.split}; {made.line()}", max(1, _WIDTH // max(size, _NARROWEST))
    write_sheet(options.out, title, [Gallery("", cards)], columns, _NARROWEST, exact=True)
    show(*(f"{card.name}: {card.text.splitlines()[0] if card.text else 'no captions'}" for card in cards))
    show(made.line(), f"drawn in {options.out}")
    words = [] if options.data is None else ["--data", options.data]
    for key, field in ShortcutOptions.model_fields.items():
        value = chosen[key]
        if key == "setup" or value != field.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"shortcuts.{key}={text}"]
    next_step(["diptych", "train", "RECIPE", *words])


def _cards(made: Shortcuts, part: Collection, options: SheetOptions) -> list[Card]:
    """Return images from all over ``part``, prepared, with the shortcuts of an epoch or of evaluation."""
    import numpy as np
    from PIL import Image

    from diptych.data.images import pasted, split_overlay

    part = part.subset(
        np.linspace(0, part.n_images - 1, min(options.pictures, part.n_images)).astype(np.int64)
    )
    shown = made.injected(part)
    overlays = [split_overlay(shown.item(row))[1] for row in range(part.n_images)]
    captions = list(shown.captions)
    if (epoch := options.epoch) is not None:
        batch = Batch(np.arange(part.n_images), np.arange(part.n_captions), part.caption_image)
        given = made.training(part, batch, epoch - 1)  # which counts from 0
        overlays = given.overlays
        captions = [with_ending(*pair) for pair in zip(part.captions, given.endings, strict=True)]
    size = options.size  # the usual share of the shorter side: 224 of 256 pixels
    preprocessing = Preprocessing(size=size, resize=max(size, size * 8 // 7))
    most = None if made.options.setup == "per-caption" else 1
    cards = []
    for row, overlay in enumerate(overlays):
        pixels = preprocessing.central(part.image(row))
        picture = Image.fromarray(pixels if overlay is None else pasted(pixels, overlay))
        first, stop = part.caption_start[row : row + 2]
        name = part.image_ids[row]
        cards.append(Card(name, picture, "\n".join(captions[first:stop][:most]), name))
    return cards
