"""``diptych perturb``: captions with typos, in another order or with another meaning, in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import (
    Captions,
    DataChoice,
    Images,
    LanguageName,
    NltkData,
    OutFolder,
    ReaderName,
    ReaderOptions,
    WordNetPath,
    options_by_name,
)
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.analysis.perturbations import PerturbedCaptions, TextPerturbation
    from diptych.analysis.perturbations.perturb import CaptionList
    from diptych.data.collection import Collection
    from diptych.data.language import Language


_LONG = 160
"""Characters of a caption that a table shows."""


def list_perturbations() -> None:
    """A table for each group."""
    from diptych.analysis.perturbations import GROUPS, choose_perturbations

    every = choose_perturbations(["all"])
    for group, what in GROUPS.items():
        rows = []
        for one in every:
            if one.group == group:
                defaults = ((key, given.default) for key, given in one.options.model_fields.items())
                options = " ".join(
                    f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                    for key, value in defaults
                )
                rows.append((one.name, one.description, "yes" if one.keeps_meaning else "no", options))
        columns = ("perturbation", "what it changes", "meaning stays", "options")
        if rows:
            print_table(f"{group}: {what}", columns, rows)
    next_step("diptych perturb DATA --perturb NAME --out FOLDER")


@dataclass
class Shown:
    """What the tables show of results that pass by."""

    whole: CaptionList
    most: int
    counts: list[tuple[str, ...]] = field(default_factory=list)
    examples: list[tuple[str, str, str]] = field(default_factory=list)

    def watch(self, results: Iterable[PerturbedCaptions]) -> Iterator[PerturbedCaptions]:
        """The same results, each noted before it is given on; examples are of a perturbation's first seed."""
        for result in results:
            why = "; ".join(f"{reason} {count:,}" for reason, count in result.reasons.items())
            numbers = (str(result.seed), f"{result.n_changed:,}", f"{len(result.texts):,}")
            if not any(row[0] == result.name for row in self.counts):
                rows = result.changed.nonzero()[0][: self.most]
                self.examples += [
                    (result.name, *_around_change(self.whole.captions[row], result.texts[row]))
                    for row in rows
                ]
            self.counts.append((result.name, *numbers, why))
            yield result


def _around_change(before: str, after: str) -> tuple[str, str]:
    """Both texts, or of long ones what stands around the first difference."""
    short = min(len(before), len(after))
    first = next((place for place in range(short) if before[place] != after[place]), short)
    start = max(0, first - _LONG // 3) if max(len(before), len(after)) > _LONG else 0
    shown = slice(start, start + _LONG)
    lead, tails = "…" * (start > 0), ["…" * (len(text) > shown.stop) for text in (before, after)]
    return lead + before[shown] + tails[0], lead + after[shown] + tails[1]


def perturb(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="A dataset: folder or file; or a .txt file with a caption per line.", show_default=False
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--perturb",
            help="Perturbations or groups of them, text or thesis (its thirteen). Repeatable, or with commas.",
            show_default="thesis",
        ),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Show every perturbation and stop.")] = False,
    set_options: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME.KEY=VALUE for a perturbation. Repeatable.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How often each is drawn anew.")] = 1,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The first seed; 0, or 42 with --compat published.", show_default=False),
    ] = None,
    compat: Annotated[
        str, typer.Option(help="none, or published: as the thesis's code, faults included.")
    ] = "none",
    language: LanguageName = "auto",
    wordnet: WordNetPath = None,
    nltk_data: NltkData = None,
    split: Annotated[
        str | None,
        typer.Option(help="The part of the data; test where there is one, or all.", show_default=False),
    ] = None,
    captions: Captions = "all",
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    examples: Annotated[
        int, typer.Option("--examples", "-n", min=0, help="Of each perturbation, to show.")
    ] = 2,
    out: OutFolder = None,
) -> None:
    """Change captions as people mistype, shuffle or reword them, and say what could not be changed and why.

    With --out, one JSONL per perturbation and seed: id, image, caption, perturbed, changed.

    Examples:

      [bold]diptych perturb flickr8k --perturb typos --out typos[/bold]

      [bold]diptych perturb captions.txt --perturb character-swap --set character-swap.edits=2[/bold]

      [bold]diptych perturb --list[/bold]
    """
    from diptych.analysis.perturbations.perturb import (
        check_perturbations,
        perturbed_over,
        usual_seed,
        write_perturbed,
    )

    if list_all:
        list_perturbations()
        return
    if data is None:
        raise UsageError("no captions given", "give a dataset or a .txt file, or --list")
    asked = [name.strip() for given in names or ["thesis"] for name in given.split(",")]
    chosen, left_out = _chosen(asked, compat)
    options = options_by_name(set_options)
    check_perturbations(chosen, options, compat)
    first = seed if seed is not None else usual_seed(compat)
    with progress():
        whole, collection, part = _captions(
            data, DataChoice(data, images, reader, reader_option), split, captions
        )
        known = _language(chosen, language, wordnet, nltk_data, collection)
        results = perturbed_over(
            whole, chosen, seeds=range(first, first + seeds), options=options, compat=compat, language=known
        )
        shown, files = Shown(whole, examples), []
        if out is None:
            for _ in shown.watch(results):
                pass
        else:
            said = {"split": part, "compat": compat, "language": None if known is None else known.line()}
            files = write_perturbed(out, whole, shown.watch(results), said)
    if shown.examples:
        print_table("", ("perturbation", "before", "after"), shown.examples)
    print_table(
        "",
        ("perturbation", "seed", "changed", "of", "unchanged, and why"),
        shown.counts,
        numbers=("seed", "changed", "of"),
    )
    said_of = f"{whole.name}{'' if part is None else f', {part}'}: {len(whole.ids):,} captions"
    said_of += "" if compat == "none" else f"; compat {compat}"
    say(said_of if known is None else f"{said_of}; language {known.line()}")
    for why, which in left_out.items():
        if which:
            say(f"left out, for {why}: {', '.join(which)}")
    again = [part for name in asked for part in ("--perturb", name)]
    if out is None:
        next_step(["diptych", "perturb", data, *again, "--out", "FOLDER"])
        return
    say(f"written to {out}")
    next_step(["less", files[0]] if collection is None else ["diptych", "stress", "MODEL", data, *again])


def _chosen(names: Sequence[str], compat: str) -> tuple[list[TextPerturbation], dict[str, list[str]]]:
    """Those that can be done, and of groups' members those that cannot, by the reason why."""
    from diptych.analysis.perturbations import TextPerturbation, choose_perturbations

    every = choose_perturbations(names)
    texts = [one for one in every if isinstance(one, TextPerturbation)]
    pictures = [one.name for one in every if not isinstance(one, TextPerturbation)]
    if not texts:
        raise UsageError(f"{', '.join(pictures)}: of pictures, not of captions", "for example --perturb text")
    possible = [one for one in texts if compat != "published" or one.published or one.name in names]
    if not possible:
        possible = texts  # none has a published form, which is an error
    unpublished = [one.name for one in texts if one not in possible]
    return possible, {"they change pictures": pictures, "they have no published form": unpublished}


def _captions(
    data: Path, choice: DataChoice, split: str | None, captions: str
) -> tuple[CaptionList, Collection | None, str | None]:
    """The captions, the collection they are of, and which part of it; a text file has neither."""
    from diptych.analysis.perturbations.perturb import CaptionList
    from diptych.encoders.embeddings import Origin

    if data.suffix.lower() == ".txt" and choice.reader is None:
        if split is not None or captions != "all" or choice.images is not None:
            raise UsageError(f"{data} has captions alone", "leave --split, --captions and --images out")
        return CaptionList.of_lines(data), None, None
    collection = Origin("", choice.section(None), None, captions).collection()
    if split is None:
        split = "test" if "test" in collection.split_sizes else "all"
    part = collection if split == "all" else collection.split(split)
    return CaptionList.of_collection(part), part, split


def _language(
    chosen: Iterable[TextPerturbation],
    name: str,
    wordnet: Path | None,
    nltk_data: Path | None,
    collection: Collection | None,
) -> Language | None:
    """The language, where a perturbation needs one."""
    if not any(one.needs for one in chosen):
        return None
    from diptych.data.language.open import open_language

    return open_language(name, wordnet=wordnet, nltk_data=nltk_data, collection=collection)
