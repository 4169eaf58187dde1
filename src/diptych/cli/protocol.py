"""``diptych protocol``: which choice of protocol would explain a printed number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import console, next_step, print_table, say
from diptych.cli.options import Data, Images, OutFolder, ReaderName, ReaderOptions, SkipBadImages, Split
from diptych.cli.progress import progress
from diptych.cli.protocol_matrices import is_matrix, matrices_of
from diptych.cli.protocol_parts import check_alone, printed_of, sources_of, warnings_of
from diptych.cli.sources import DataChoice

if TYPE_CHECKING:
    from diptych.evaluation.printed import DigitReport
    from diptych.evaluation.variants import Exploration

_ROWS = 12  # variants in the table


def protocol(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run, a folder that diptych embed wrote, a saved encoder, or a name such as hf:NAME; or a file of "
            "scores, SCORES.npy (images, captions). Without one, the digits alone are read.",
            show_default=False,
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            help="The printed row: PAPER:TABLE:ROW, e.g. 'reproducibility:table-2.1:Repr. X-VLM, COCO'; a part "
            "of it lists what could follow.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A printed cell instead: 'i2t R@1=64.6', 'txt_r1=64.6', 'rsum=411.62'. Repeatable.",
            show_default=False,
        ),
    ] = None,
    decimals: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=4,
            help="Digits after the point of every target; those of the recall with the most by default.",
            show_default=False,
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            help="LABEL=FOLDER: other embeddings of the same model: another split, text cut or prompt. Repeatable.",
            show_default=False,
        ),
    ] = None,
    reranked: Annotated[
        Path | None,
        typer.Option(
            help="Re-ranked candidates of RUN's embeddings; by default those that diptych evaluate --rerank "
            "stored with them.",
            show_default=False,
        ),
    ] = None,
    matching: Annotated[
        list[str] | None,
        typer.Option(
            help="Beside SCORES.npy: FILE.npy of matching scores of all pairs; or i2t=FILE.npy and t2i=FILE.npy, "
            "one row per query, -100 where nothing was scored.",
            show_default=False,
        ),
    ] = None,
    caption_image: Annotated[
        Path | None,
        typer.Option(
            help="Beside SCORES.npy: the image row of each caption, FILE.npy; by default the captions of an image "
            "stand next to each other.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Relative distance that counts as explained.")] = 0.05,
    changes: Annotated[
        int, typer.Option(min=1, help="Up to how many changes of protocol are combined; two of any kind.")
    ] = 4,
    data: Data = None,
    split: Split = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Say which choice of protocol would explain a printed number, and what its digits give away.

    Recall is computed again from stored embeddings under every choice of captions, galleries, tie rule,
    number of re-ranked candidates, counting and columns, and the fewest changes that bring all printed cells
    within tolerance are named. That a change explains a number is no proof that it was made.

    Examples:

      [bold]diptych protocol xvlm/embeddings --published 'reproducibility:table-2.1:Repr. X-VLM, COCO'[/bold]

      [bold]diptych protocol clip/test --also val=clip/val --target 'i2t R@1=77.02' --target 't2i R@1=74.95'[/bold]

      [bold]diptych protocol itc.npy --matching itm.npy --target 'i2t R@5=84.48' --target 'i2t R@10=84.50'[/bold]

      [bold]diptych protocol --published 'reproducibility:table-2.1:Repr. CLIP, Flickr30k'[/bold]
    """
    from diptych.core.files import write_json
    from diptych.evaluation.printed import read_digits
    from diptych.evaluation.variants import Inputs, explain, explore
    from diptych.report.protocol import write_protocol_page

    wanted, about, on = printed_of(published, target, decimals)
    found, name, lines, home = None, "", list(about), out
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    check_alone(source, also, reranked, choice, split, matching, caption_image)
    with progress():
        if source is not None:
            if is_matrix(source):
                sources, said, warnings, home = matrices_of(source, matching, caption_image, out)
            else:
                sources, said, home = sources_of(source, choice, split, also or [], reranked, out)
                warnings = warnings_of(on, sources)
            lines += said
            name = source
            inputs = Inputs(sources, wanted, warnings)
            found = explore(inputs, tolerance=tolerance, exhaustive=min(2, changes), changes=changes)
        digits = read_digits(wanted, None if found is None else found.galleries)
    if found is not None:
        _warn(found)
        _show(found)
        for line in explain(found)[len(found.warnings) :]:
            say(line)
    else:
        say(", ".join(f"{cell} {value}" for cell, value in wanted.to_dict().items()))
    _say_digits(digits)
    is_alone = found is not None and found.default["k_test"] == "none"
    if is_alone and any(one.kind == "truncated" for one in digits.signs):
        option = (
            "--matching FILE" if is_matrix(source) else "--reranked FOLDER (or diptych evaluate --rerank K)"
        )
        say(f"these may be re-ranked numbers: with {option}, matching scores are tried too")
    for line in lines:
        say(line)
    if home is None:
        next_step("diptych protocol RUN with the same target: which protocol would explain it")
        return
    says = {"says": [] if found is None else explain(found), "digits say": digits.sentences()}
    explored = {} if found is None else {"exploration": found.to_dict()}
    write_json(
        home / "protocol.json",
        {
            "format": 1,
            "target": wanted.to_dict(),
            "of": lines,
            **says,
            **explored,
            "digits": digits.to_dict(),
        },
    )
    page = write_protocol_page(home / "report.html", wanted, digits, found, name=name, lines=lines)
    say(
        f"with every variant in {home / 'protocol.json'}"
        if found is not None
        else f"in {home / 'protocol.json'}"
    )
    next_step(["open", page])


def _warn(found: Exploration) -> None:
    from rich.text import Text

    for line in found.warnings:
        console().print(Text("warning: ", style="bold red").append(f"{line}.", style="bold not red"))


def _show(found: Exploration) -> None:
    """The printed row, and below it the default, what explains and the nearest."""
    from diptych.report.protocol import shown_variants

    cells = found.target.cells
    rows = [("printed", *(str(cell) for cell in cells.values()), "")]
    for one in shown_variants(found, _ROWS):
        values = []
        for name, cell in cells.items():
            mark = "=" if name in one.exact else "✓" if name in one.within else " "
            values.append(f"{one.values[name]:.{cell.decimals}f}{mark}")
        rows.append((one.line(), *values, f"{100 * one.mean_error:.1f} %"))
    headers = [name.replace(" ", "\n", 1) for name in cells]
    print_table(
        found.target.label,
        ("variant", *headers, "off"),
        rows,
        numbers=(*headers, "off"),
        caption=f"✓ within {100 * found.tolerance:g} %, = printed alike; off: mean relative distance",
    )


def _say_digits(digits: DigitReport) -> None:
    lines = digits.sentences()
    say("the digits:" if lines else "the digits: nothing that other digits would not say as well")
    for line in lines:
        say(f"  {line}")
