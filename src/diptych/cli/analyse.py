"""``diptych analyse``: what an encoder learned, what breaks it, and what would explain a printed number."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.analysis.cocos_report import CocosOptions
from diptych.analysis.granularity.compare import GranularityOptions
from diptych.cli.console import next_step, show, stop_on_signal, warn
from diptych.cli.sources import Model, Source, encoded_of, named, run_of
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.options import command_line, parameter
from diptych.data.language.open import LanguageSpec
from diptych.data.several import DataChoices, named_apart
from diptych.data.source import CaptionsOption, OutOption, SplitOption
from diptych.evaluation.options import AuditOptions, ProtocolOptions, StressOptions

if TYPE_CHECKING:
    from diptych.data.collection import Collection


def stress(model: Model, options: StressOptions) -> None:
    """Perturb queries and measure what it costs, with intervals and corrected p-values.

    Perturbed captions search images, perturbed images search captions; the gallery stays clean. Ctrl-C stops at
    the next batch; the same command resumes, after kill -9 too.

    Examples:
        diptych analyse stress runs/flickr8k --perturb typos --seeds 1
        diptych analyse stress hf:NAME flickr30k --perturb thesis --out clip
    """
    from diptych.evaluation.sources import stress_named
    from diptych.report.stress import stress_page

    with stop_on_signal():
        found, folder, whole = stress_named(named(model, options, options.split), options)
        page = stress_page(found, whole).save(folder / "report.html")
    show(*(table for table in found.tables() if not table.folded), *found.lines())
    if found.opened:
        show(f"{folder} held this run, finished, of the same content: opened, not run again")
    show(f"everything in {folder}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])


def audit(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Runs, saved encoders, or names such as hf:NAME; several are printed side by side.",
            metavar="RUN",
        ),
    ],
    options: AuditOptions,
) -> None:
    """Measure how much of what images and captions say embeddings hold: shared, specific, shortcuts.

    Probes predict each fact from frozen embeddings; what they save of the fact's bits on test images is held.
    On data without facts, the presence of words takes their place. A run that was trained with shortcuts is
    audited with and without them.

    Examples:
        diptych analyse audit runs/infonce runs/ltd runs/ifm --probe linear
        diptych analyse audit hf:openai/clip-vit-base-patch32 --scenes --out clip
    """
    from diptych.analysis.information.tables import audit_lines, kinds_tables
    from diptych.report.analysis import audit_page
    from diptych.training.evaluations import audit_named

    found, pages = {}, []
    for name, folder, one in audit_named(sources, options):
        found[name] = one
        one.save(folder / "audit.json")
        pages.append(audit_page(one, name).save(folder / "report.html"))
    show(*kinds_tables(found), *audit_lines(found))
    next_step(["open", *pages])


class Collections(DataChoices, CaptionsOption, SplitOption, LanguageSpec, OutOption):
    """Which captions are measured."""

    data: list[str] = parameter(
        ...,
        "A dataset: folder or file, or NAME=DATASET; and another one to compare it with.",
        argument=True,
        metavar="COLLECTION",
    )
    examples: int = parameter(2, "Captions at each extreme, to show.", "--examples", "-n", ge=0, le=5)

    def parts(self) -> list[tuple[Collection, str]]:
        """Return what is measured of each collection, under the name that was given, and its split's name."""
        from diptych.data.captions import choose_captions
        from diptych.encoders.embeddings import read_data

        if len(self.data) > 2:
            raise UsageError(f"{len(self.data)} collections are given", "one, or two to compare")
        parts = []
        for name, section in self.several():
            whole = read_data(section)
            part, split = whole.part(self.split)
            parts.append((replace(choose_captions(part, self.captions), name=name or whole.name), split))
        named_apart(part for part, _ in parts)
        return parts


def granularity(data: Collections, options: GranularityOptions) -> None:
    """Count adjectives, phrases, determiners, concepts and words of captions; compare two collections.

    Every feature has an interval over images; two collections of the same images are compared in pairs, with
    effect sizes and corrected p-values.

    Examples:
        diptych analyse granularity coco=dataset_coco.json fg=MSCOCO_FG_ann.json
        diptych analyse granularity a=scenes b=scenes --reader-option b.finer=2
    """
    from diptych.analysis.granularity.compare import measure_and_compare
    from diptych.analysis.granularity.tables import comparison_table, granularity_tables
    from diptych.data.language.open import is_of_scenes
    from diptych.report.analysis import granularity_page

    out, parts = data.out, data.parts()
    # one language for all: that of scenes where all are scenes
    language = data.open(parts[0][0] if all(is_of_scenes(part) for part, _ in parts) else None)
    measured, compared = measure_and_compare(parts, language, options, out)
    show(*granularity_tables(measured, data.examples))
    if compared is not None:
        show(comparison_table(compared), *compared.notes)
    show(*(one.line() for one in measured))
    if out is None:
        again = command_line(
            ["diptych", "analyse", "granularity", *data.data], data, options, left_out={"data"}
        )
        next_step(f"{again} --out granularity")
        return
    page = granularity_page(measured, compared).save(out / "report.html")
    show(f"written to {out}")
    next_step(["open", page])


def cocos(source: Source, options: CocosOptions) -> None:
    """Count contributing samples (COCOS): which candidates of a batch move a query, for any loss.

    Batches of the training split are drawn once through, without dropout and augmentation; every count is a
    mean over them.

    Examples:
        diptych analyse cocos runs/flickr8k
        diptych analyse cocos runs/flickr8k --objective triplet --option margin=0.2
        diptych analyse cocos hf:NAME --data flickr30k --objective infonce -o cocos
    """
    from diptych.encoders.embeddings import Origin
    from diptych.report.analysis import write_cocos
    from diptych.training.evaluations import count_contributing

    embedded, out, split = Origin.read(Path(source)), options.out, options.split
    run = run_of(source if embedded is None else embedded.model)
    if split is None and embedded is None:
        split = "train" if run is None else run.recipe.data.train
    kept = None if out is None else out / "embeddings"
    found = count_contributing(run, options, lambda: encoded_of(source, options, split, kept)[0])
    counted = "" if options.compat == "none" else f"-{options.compat}"
    about = found.protocol.about
    name = safe_name(f"{about['dataset']}-{about['split']}-{found.protocol.objective}{counted}")
    target = Path(source) / "cocos" / name if out is None else out / "cocos"
    written, picture, page = write_cocos(found, target)
    show(*found.tables(), found.protocol.line(), *found.notes())
    show(f"with the distribution of weights in {written}, drawn in {picture}")
    next_step(["open", page])


def protocol(options: ProtocolOptions) -> None:
    """Find which choice of protocol would explain a printed number, and what its digits say.

    Recall is computed again under every choice of captions, galleries, ties, re-ranked candidates, counting and
    columns. The fewest changes that bring all printed cells within tolerance are named; that is no proof of them.

    Examples:
        diptych analyse protocol embedded --published svl:table-4.2:F5
        diptych analyse protocol test --also val=val --target 'i2t R@1=77.02'
        diptych analyse protocol itc.npy --matching itm.npy --target 'i2t R@5=8'
    """
    from diptych.core.files import write_json
    from diptych.evaluation.printed import as_target
    from diptych.evaluation.variants.files import explore_named
    from diptych.evaluation.variants.tables import Verdict
    from diptych.report.analysis import protocol_page
    from diptych.studies.published import other_data, published_target

    source, out = options.source, options.out
    if options.published is None:
        target, on, of = as_target(options.target, options.decimals), None, list[str]()
    else:
        target, on, of = published_target(options.published, options.decimals)
    warnings = (lambda known: ()) if on is None else partial(other_data, on)
    explored, more = explore_named(options, target, encoded_of, warnings)
    found = Verdict(target, explored, [*of, *more], options.is_matrix)
    for line in found.warnings:
        warn(line)
    show(*found.tables(), *found.lines())
    if out is None:
        again = command_line(["diptych", "analyse", "protocol"], options, left_out={"source"})
        if source is not None:
            next_step(f"{again} {shlex.quote(source)} --out protocol")
        else:
            show(
                "name a run or embeddings too, and protocols that would explain these numbers are looked for"
            )
        return
    write_json(out / "protocol.json", found.to_dict())
    page = protocol_page(found, source or "").save(out / "report.html")
    show(f"{'' if explored is None else 'with every variant '}in {out / 'protocol.json'}")
    next_step(["open", page])
