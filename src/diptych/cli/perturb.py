"""``diptych data perturb``: captions with typos, in another order or with another meaning, in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from diptych.cli.console import next_step, show
from diptych.cli.sources import LanguageSpec, OutOption, PartSpec, options_by_name
from diptych.core.errors import UsageError
from diptych.core.options import parameter

if TYPE_CHECKING:
    from diptych.analysis.perturbations import TextPerturbation
    from diptych.analysis.perturbations.perturb import CaptionList
    from diptych.data.collection import Collection


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
        from diptych.analysis.perturbations.perturb import CaptionList
        from diptych.encoders.embeddings import Origin

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
    from diptych.analysis.perturbations import perturb as library
    from diptych.analysis.perturbations.declaration import perturbation_tables

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
    from diptych.analysis.perturbations import TextPerturbation, choose_perturbations

    every = choose_perturbations(names)
    texts = [one for one in every if isinstance(one, TextPerturbation)]
    pictures = [one.name for one in every if not isinstance(one, TextPerturbation)]
    if not texts:
        raise UsageError(f"{', '.join(pictures)}: of pictures, not of captions", "for example --perturb text")
    possible = [one for one in texts if compat != "published" or one.published or one.name in names]
    possible = possible or texts  # none has a published form, which is an error
    unpublished = [one.name for one in texts if one not in possible]
    return possible, {"they change pictures": pictures, "they have no published form": unpublished}
