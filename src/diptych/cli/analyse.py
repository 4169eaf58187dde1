"""``diptych analyse``: what an encoder learned, what breaks it, and what would explain a printed number."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.analysis.cocos_report import CocosOptions
from diptych.analysis.granularity.compare import GranularityOptions
from diptych.cli.console import next_step, show, stop_on_signal, warn
from diptych.cli.sources import Model, Source, encoded_of, named, run_of
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.options import command_line, parameter
from diptych.data.language.open import LanguageSpec
from diptych.data.several import DataChoices, named_apart
from diptych.data.source import CaptionsOption, OutOption, SplitOption
from diptych.evaluation.options import AuditOptions, ProtocolOptions, StressOptions

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.evaluation.printed.target import Target
    from diptych.studies.published import EvaluatedOn, PublishedRow


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
    """The captions that are measured."""

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
    from diptych.analysis.granularity.result import comparison_table, granularity_tables
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
    show(*found.tables(), *found.lines())
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
    from diptych.evaluation.printed.target import as_target
    from diptych.evaluation.sources import explore_named
    from diptych.report.analysis import protocol_page

    source, out = options.source, options.out
    if options.published is None:
        target = as_target(options.target, options.decimals)
        found = explore_named(options, target, encoded_of, lambda known: (), [])
    else:
        row = published_row(options.published)
        target, left_out = target_of(row, options.decimals)
        of = [f"printed: {target.label}; {row.on.describe()}"]
        of += [f"left out, no measures of retrieval: {', '.join(left_out)}"] if left_out else []
        found = explore_named(options, target, encoded_of, partial(other_data, row.on), of)
    for line in found.warnings:
        warn(f"{line}.")
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
    show(f"{'with every variant ' if found.variants else ''}in {out / 'protocol.json'}")
    next_step(["open", page])


def published_row(reference: str) -> PublishedRow:
    """Return the row that ``PAPER:TABLE:ROW`` names, with ``@EVALUATION`` where it was printed for several: for
    example ``d2s:table-3.1:COTS (5.3M)@coco-blip``; upper and lower case are the same."""
    from diptych.studies.published import published_papers, published_table, published_tables

    def known(kind: str, given: str, names: Sequence[str], missing: str, fix: str) -> str:
        if not given:
            raise UsageError(missing, fix)
        found = next((name for name in names if name.casefold() == given.casefold()), None)
        if found is None:
            has_comma = any("," in name for name in names)
            raise UnknownNameError(kind, given, [f"“{name}”" for name in names] if has_comma else names)
        return found

    paper, name, row = [*(part.strip() for part in reference.split(":", 2)), "", ""][:3]
    papers, form, no = published_papers(), "PAPER:TABLE:ROW", f"{reference!r} names no"
    fix = f"{form}, e.g. reproducibility:table-2.1:Repr. X-VLM, COCO; papers: {', '.join(papers)}"
    paper = known("published paper", paper, papers, f"{no} paper", fix)
    names = published_tables(paper)
    fix = f"{form}; tables of {paper}: {', '.join(names)}"
    name = known(f"table of {paper}", name, names, f"{no} table", fix)
    listed, rows = {}, published_table(paper, name).rows
    for one in rows:
        label = f" ({one.label})" if one.label and one.label != one.row else ""
        listed[one.row] = one.row + label + ("" if retrieval_cells(one) else " [no measure of retrieval]")
    key = ""
    if "@" in row and row.casefold() not in map(str.casefold, listed):
        row, key = (part.strip() for part in row.rsplit("@", 1))
    fix = f"rows of {paper}:{name}: {'; '.join(listed.values())}"
    row = known(f"row of {paper} {name}", row, list(listed), f"{no} row", fix)
    found = {one.on.key: one for one in rows if one.row == row}
    first, *others = found
    missing = f"{paper} {name} has row {row!r} for {len(found)} evaluations: {', '.join(found)}"
    fix = f"name one, e.g. {paper}:{name}:{row}@{first}"
    kind, key = f"evaluation of {paper} {name}, row {row},", key if key or others else first
    return found[known(kind, key, list(found), missing, fix)]


def retrieval_cells(row: PublishedRow) -> dict[str, str]:
    """Return the measure of each column of a row that is one of retrieval, and no bound."""
    from diptych.evaluation.printed.target import cell_parts

    found: dict[str, str] = {}
    for column, cell in row.cells.items():
        with suppress(UsageError):
            found |= {} if cell.bound else {column: cell_parts(column)[1]}
    return found


def target_of(row: PublishedRow, decimals: int | None = None) -> tuple[Target, tuple[str, ...]]:
    """Return the row's cells that are measures of retrieval, and the columns that are left out.

    A file drops zeros at the end, but recalls are printed with one decimal at least. Precisions that a table
    prints as fractions of 1 beside recalls in per cent are given in per cent, as everything else.
    """
    from diptych.evaluation.printed.target import as_target
    from diptych.metrics.measuring import measure

    measures, values = retrieval_cells(row), dict[str, float | str]()
    if not measures:
        printed = ", ".join(row.cells) or "nothing"
        raise UsageError(f"row {row.row!r} prints no measure of retrieval: {printed}", "choose another row")
    recalls = [column for column, kind in measures.items() if kind.startswith("R@")]
    highest = max((row.cells[column].value for column in recalls), default=0.0)
    for column, kind in measures.items():
        value = row.cells[column].value
        is_fraction = value <= 1 < highest and getattr(measure(kind), "kind", "") == "share"
        # of a text every digit counts
        is_text = kind == "rsum" or column in recalls
        values[column] = str(value) if is_text else round(100 * value, 6) if is_fraction else value
    target = replace(as_target(values, decimals, row.where), runs=next(iter(row.cells.values())).runs)
    return target, tuple(column for column in row.cells if column not in values)


def other_data(on: EvaluatedOn, given: Mapping[str, tuple[Mapping[str, Any], int]]) -> tuple[str, ...]:
    """Return warnings where the data at hand, metadata and images by name, are not those of the printed numbers."""
    from diptych.data.known import known_by_name

    def own_name(name: str) -> str:
        known = known_by_name(name)
        return (name if known is None else known.name).casefold()

    printed = f"printed of {on.dataset} {on.split} ({on.images:,} images)"
    others = {
        name: f"{metadata['dataset']} {metadata['split']} ({images:,} images)"
        for name, (metadata, images) in given.items()
        if own_name(str(metadata["dataset"])) != own_name(on.dataset)
    }
    if len(others) == len(given):
        computed = (
            f"computed from {'; '.join(others.values())}; what follows says which protocols would give "
        )
        why = "such numbers on these data, not why they were printed of those"
        return (f"OTHER DATA: {printed}, {computed}{why}",)
    if others:
        return (f"OTHER DATA: {printed}; {', '.join(others)} is {'; '.join(others.values())}",)
    if not any(images == on.images for _, images in given.values()):
        sizes = ", ".join(f"{images:,} ({name})" for name, (_, images) in given.items())
        return (f"Printed of {on.images:,} images; given are {sizes}: recall falls as a gallery grows",)
    return ()
