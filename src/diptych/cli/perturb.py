"""``diptych data perturb``: captions with typos, in another order or with another meaning, in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import LanguageSpec, OutOption, PartSpec, options_by_name
from diptych.core.errors import UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.analysis.perturbations import PerturbedCaptions, TextPerturbation
    from diptych.analysis.perturbations.perturb import CaptionList
    from diptych.data.collection import Collection


_LONG = 160
"""Characters of a caption that a table shows."""


def list_perturbations() -> None:
    """Print a table for each group."""
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
            show(Table.of(f"{group}: {what}", "", columns, rows))
    next_step("diptych data perturb DATA --perturb NAME --out FOLDER")


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


class PerturbOptions(LanguageSpec, PartSpec, OutOption):
    """Which captions are changed, and how."""

    data: Path | None = Field(
        None,
        description="A dataset: folder or file; or a .txt file with a caption per line.",
        json_schema_extra={"argument": True},
    )
    perturb: list[str] = Field(
        [],
        description="Perturbations or groups of them, text or thesis (its thirteen). Repeatable, or with commas.",
        json_schema_extra={"default": "thesis", "names": "diptych.analysis.perturbations:PERTURBATIONS"},
    )
    list_all: bool = Field(
        False, description="Show every perturbation and stop.", json_schema_extra={"flags": ["--list"]}
    )
    set_: list[str] = Field(
        [],
        description="NAME.KEY=VALUE for a perturbation. Repeatable.",
        json_schema_extra={"flags": ["--set"]},
    )
    seeds: int = Field(1, ge=1, description="How often each is drawn anew.")
    seed: int | None = Field(
        None,
        ge=0,
        description="The first seed.",
        json_schema_extra={"default": "0, or 42 with --compat published"},
    )
    compat: Literal["none", "published"] = Field(
        "none", description="published: as the thesis's code, faults included."
    )
    examples: int = Field(
        2,
        ge=0,
        description="Of each perturbation, to show.",
        json_schema_extra={"flags": ["--examples", "-n"]},
    )


def perturb(options: PerturbOptions) -> None:
    """Change captions as people mistype, shuffle or reword them, and say what could not be changed and why.

    With --out, one JSONL per perturbation and seed: id, image, caption, perturbed, changed.

    Examples:
        diptych data perturb flickr8k --perturb typos --out typos
        diptych data perturb captions.txt --perturb typos --seeds 3
        diptych data perturb --list
    """
    from diptych.analysis.perturbations.perturb import (
        check_perturbations,
        perturbed_over,
        usual_seed,
        write_perturbed,
    )

    if options.list_all:
        list_perturbations()
        return
    data, compat, out = options.data, options.compat, options.out
    if data is None:
        raise UsageError("no captions given", "give a dataset or a .txt file, or --list")
    names = [name.strip() for given in options.perturb or ["thesis"] for name in given.split(",")]
    chosen, left_out = _chosen(names, compat)
    settings = options_by_name(options.set_)
    check_perturbations(chosen, settings, compat)
    first = options.seed if options.seed is not None else usual_seed(compat)
    seeds = range(first, first + options.seeds)
    with progress():
        whole, collection, part = _captions(options)
        known = options.open(collection) if any(one.needs for one in chosen) else None
        results = perturbed_over(whole, chosen, seeds=seeds, options=settings, compat=compat, language=known)
        shown, files = Shown(whole, options.examples), []
        if out is None:
            for _ in shown.watch(results):
                pass
        else:
            about = {"split": part, "compat": compat, "language": None if known is None else known.line()}
            files = write_perturbed(out, whole, shown.watch(results), about)
    if shown.examples:
        show(Table.of("", "", ("perturbation", "before", "after"), shown.examples))
    show(Table.of("", "", ("perturbation", "seed", "changed", "of", "unchanged, and why"), shown.counts))
    said_of = f"{whole.name}{'' if part is None else f', {part}'}: {len(whole.ids):,} captions"
    said_of += "" if compat == "none" else f"; compat {compat}"
    say(said_of if known is None else f"{said_of}; language {known.line()}")
    for why, which in left_out.items():
        if which:
            say(f"left out, for {why}: {', '.join(which)}")
    again = [part for name in names for part in ("--perturb", name)]
    if out is None:
        next_step(["diptych", "data", "perturb", data, *again, "--out", "FOLDER"])
        return
    say(f"written to {out}")
    next_step(
        ["less", files[0]] if collection is None else ["diptych", "analyse", "stress", "MODEL", data, *again]
    )


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


def _captions(options: PerturbOptions) -> tuple[CaptionList, Collection | None, str | None]:
    """Return the captions, the collection they are of, and which part of it; a text file has neither."""
    from diptych.analysis.perturbations.perturb import CaptionList
    from diptych.encoders.embeddings import Origin

    data, split = options.data, options.split
    assert data is not None
    if data.suffix.lower() == ".txt" and options.reader is None:
        if split is not None or options.captions != "all" or options.images is not None:
            raise UsageError(f"{data} has captions alone", "leave --split, --captions and --images out")
        return CaptionList.of_lines(data), None, None
    collection = Origin("", options.section(None), None, options.captions).collection()
    if split is None:
        split = "test" if "test" in collection.split_sizes else "all"
    part = collection if split == "all" else collection.split(split)
    return CaptionList.of_collection(part), part, split
