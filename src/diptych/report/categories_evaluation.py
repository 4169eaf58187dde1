"""An evaluation of category-to-image retrieval as a page (thesis chapter 7)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from diptych.core.context import track
from diptych.core.errors import MismatchError
from diptych.core.files import write_bytes
from diptych.report.categories_tables import (
    best_value,
    error_table,
    interval_table,
    measure_table,
    percent,
    seen_table,
    setting_name,
    short_path,
    sibling_table,
)
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.intent_content import Block, Legend, Page, Panels, Section, series
from diptych.report.page import DARK, LIGHT, Headline, judgement, shorten
from diptych.report.pictures import Thumbnail, Thumbnails

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.report.pictures import Thumbnails


@dataclass(frozen=True)
class Shown:
    """One product that came first for a category."""

    asked: str
    found: str
    right: bool
    kind: str
    name: str
    title: str
    score: str
    picture: Thumbnail | None

    @property
    def state(self) -> str:
        """``right`` or ``wrong``."""
        return judgement(self.right)

    @property
    def mark(self) -> str:
        """Of the state, for those who see no colours."""
        return "✓" if self.right else "✗"


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side."""

    caption: str
    items: Sequence[Shown]
    kind: ClassVar[str] = "gallery"


def render_categories_page(page: Page) -> str:
    """The text of one self-contained HTML page; everything but figures is escaped."""
    from markupsafe import Markup

    from diptych.report.page import templates

    colours: Sequence[Mapping[str, str]] = (LIGHT, DARK)
    template = templates().get_template("categories.html.j2")
    return template.render(page=page, drawn=Markup, light=colours[0], dark=colours[1])


def write_page(path: Path | str, page: Page) -> Path:
    """Write a page as one HTML file, whole or not at all."""
    write_bytes(path, render_categories_page(page).encode("utf-8", "replace"))
    return Path(path)


_MEASURE = "mAP@10"

Numbers = Mapping[str, Any]


def evaluation_headlines(settings: Mapping[str, Numbers]) -> list[Headline]:
    """The best model of every setting."""
    shown = []
    for name, said in settings.items():
        highest = best_value(said, "P@1")
        best = [row for row in said["table"] if row["values"]["P@1"]["mean"] == highest]
        value = best[0]["values"]["P@1"]
        who = best[0]["label"] if len(best) == 1 else f"{len(best)} models"
        shown.append(
            Headline(
                f"P@1, {setting_name(name)}",
                f"{percent(highest)} %",
                f"{who}; chance {percent(value['chance'])} %",
            )
        )
    return shown


def evaluation_findings(setting: str, said: Numbers) -> list[str]:
    """Of one setting: the best model, and which differ from the baseline."""
    table = said["table"]
    highest = best_value(said, _MEASURE)
    best = [row for row in table if row["values"][_MEASURE]["mean"] == highest]
    names, value = _listed([row["label"] for row in best]), best[0]["values"][_MEASURE]
    verb = "has" if len(table) == 1 else "is best:" if len(best) == 1 else "are best:"
    text = f"{setting_name(setting).capitalize()}: {names} {verb} {_MEASURE} of {percent(highest)} %"
    if value["low"] is not None and len(best) == 1:
        text += f" ({percent(value['low'])}–{percent(value['high'])})"
    if len(best) == 1:
        text += f"; {percent(best[0]['products']['R@1']['mean'])} % of products find their own category first"
    return [" ".join([f"{text}.", *_tested(said)])]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _tested(said: Numbers) -> list[str]:
    """How many models differ from the baseline, by the one measure."""
    labels = {row["model"]: row["label"] for row in said["table"]}
    mine = [one for one in said["differences"] if one["measure"] == _MEASURE]
    if not mine:
        return []
    base = labels[said["baseline"]]
    parts = []
    for verdict, what in (("worse", "worse than"), ("better", "better than")):
        names = [labels[one["run"]] for one in mine if one["verdict"] == verdict]
        if names:
            parts.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what} {base}")
    undecided = [labels[one["run"]] for one in mine if not one["verdict"]]
    if undecided:
        parts.append(f"between {base} and {_listed(undecided)} these categories do not decide")
    sentence = "; ".join(parts)
    return [f"{sentence[0].upper()}{sentence[1:]} (corrected tests over {said['categories']:,} categories)."]


Groups = Sequence[Mapping[str, Any]]


def model_legend(labels: Sequence[str]) -> Legend:
    """What the lines of :func:`level_figure` are."""
    return Legend([(series(place).name, series(place).glyph, label) for place, label in enumerate(labels)])


def level_figure(
    name: str,
    title: str,
    levels: Mapping[str, Groups],
    measure: str,
) -> str:
    """A line per model over the levels of the tree, as ``<svg>``."""
    depths = sorted({int(one["group"]) for groups in levels.values() for one in groups})
    highest, said = 0.0, []
    with draw(name) as drawing:
        axes = drawing.axes
        for place, (label, groups) in enumerate(levels.items()):
            way = series(place)
            x = [int(one["group"]) for one in groups]
            y = [100 * float(one["values"][measure]["mean"]) for one in groups]
            highest = max([highest, *y])
            axes.plot(
                x, y, color=way.colour, marker=way.marker, markersize=5.5, linestyle=way.dash, linewidth=1.6
            )
            said.append(
                f"{label} "
                + ", ".join(f"{value:.1f} at level {depth}" for depth, value in zip(x, y, strict=True))
            )
        counts = {int(one["group"]): one["categories"] for groups in levels.values() for one in groups}
        axes.set_xticks(depths, [f"{depth}\n{counts[depth]:,.0f}" for depth in depths])
        axes.set_xlim(depths[0] - 0.3, depths[-1] + 0.3)
        axes.set_ylim(0, 1.1 * highest or 1.0)
        axes.set_title(title)
        axes.set_xlabel("level of the category, and how many ask", fontsize=9)
        axes.set_ylabel(f"{measure} (%)")
        drawing.summary = f"{title}: {measure} in per cent by level of the tree: {'; '.join(said)}."
    return drawing.svg


def bars_figure(
    name: str, title: str, counts: Mapping[int, int], xlabel: str, *, zero: bool = False, runs: int = 1
) -> str:
    """Bars of counts by whole numbers, as ``<svg>``; shares are written above."""
    from matplotlib.ticker import MaxNLocator

    total = sum(counts.values())
    low, high = (-1, 1) if zero else (1, 3)
    values = list(range(min(low, *counts), max(high, *counts) + 1))
    with draw(name) as drawing:
        axes = drawing.axes
        for value in values:
            count = counts.get(value, 0)
            colour = BLUE if not zero or value < 0 else ORANGE if value > 0 else INK
            axes.bar(value, count / runs, 0.7, color=colour, alpha=0.88 if value or not zero else 0.55)
            if count:
                axes.annotate(
                    f"{100 * count / total:.0f} %" if 200 * count >= total else "<1 %",
                    (value, count / runs),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9 if len(values) < 10 else 7.5,
                )
        axes.set_xticks(values, [f"{value:+d}" if zero and value else str(value) for value in values])
        axes.set_xlim(values[0] - 0.7, values[-1] + 0.7)
        axes.set_ylim(0, 1.18 * max(counts.values()) / runs)
        axes.tick_params(axis="x", length=0)
        axes.set_title(title)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_xlabel(xlabel, fontsize=9)
        axes.set_ylabel("categories")
        shares = ", ".join(
            f"{100 * count / total:.0f} % at {value:+d}" for value, count in sorted(counts.items())
        )
        drawing.summary = f"{title}, {total:,} errors: {shares}."
    return drawing.svg


def evaluated_sections(
    found: ModelsEvaluation, settings: Mapping[str, Numbers], test: Catalogue | None, thumbnails: Thumbnails
) -> list[Section]:
    """All of them, in order; errors, siblings and examples are the baseline's."""
    return [
        _overview(settings),
        *_settings(settings),
        *_seen(found, settings),
        _errors(found, settings),
        *_siblings(found, settings),
        *_examples(found, settings, test, thumbnails),
    ]


def _overview(settings: Mapping[str, Numbers]) -> Section:
    findings = [text for name, said in settings.items() for text in evaluation_findings(name, said)]
    return Section("overview", "Which model finds products", findings)


def _settings(settings: Mapping[str, Numbers]) -> list[Section]:
    sections = []
    for place, (name, said) in enumerate(settings.items()):
        blocks: list[Block] = [
            measure_table("Measures", said),
            interval_table("All measures with 95 % intervals over categories", said),
        ]
        levels = {row["label"]: said["levels"][row["model"]] for row in said["table"]}
        if any(len(groups) > 1 for groups in levels.values()):
            blocks += [
                model_legend(list(levels)),
                Panels(
                    [
                        level_figure(f"levels-{place}-{number}", f"{measure} by level", levels, measure)
                        for number, measure in enumerate((_MEASURE, "P@1"))
                    ]
                ),
            ]
        sections.append(
            Section(
                f"setting-{place}",
                setting_name(name).capitalize(),
                (),
                f"{said['line']}.",
                blocks,
            )
        )
    return sections


def _seen(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> list[Section]:
    with_both = {
        name: said
        for name, said in settings.items()
        if any(len(groups) > 1 for groups in said["seen"].values())
    }
    known = any(groups for said in settings.values() for groups in said["seen"].values())
    if not known:
        return []
    trained = [row["model"] for row in next(iter(settings.values()))["table"] if row["trained"]]
    model = found.baseline
    blocks: list[Block] = [
        seen_table("Categories that training saw, and others", settings, [model], folded=False)
    ]
    if len(trained) > 1:
        blocks.append(seen_table("The same of all trained models", settings, trained, folded=True))
    notes = (
        []
        if with_both
        else ["Training saw every category that asks: there is nothing unseen to compare with."]
    )
    return [
        Section(
            "seen",
            "Seen and unseen categories",
            (),
            "Seen: the category stood for some training product, whatever stood above or below it. In per cent; "
            "numbers of categories are means over seeds where training draws them.",
            blocks,
            notes,
        )
    ]


def _errors(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> Section:
    model = found.baseline
    blocks: list[Block] = [error_table("First products of another category", settings, [model], folded=False)]
    depths, distances = [], []
    for place, (name, said) in enumerate(settings.items()):
        errors = said["errors"][model]
        counts, runs = errors["all"], errors["runs"]
        of_depth = {int(key): value for key, value in counts["depths"].items()}
        of_edges = {int(key): value for key, value in counts["distances"].items()}
        if of_depth:
            depths.append(
                bars_figure(
                    f"depth-{place}",
                    setting_name(name).capitalize(),
                    of_depth,
                    "depth of the category found − depth of the one asked",
                    zero=True,
                    runs=runs,
                )
            )
        if of_edges:
            distances.append(
                bars_figure(
                    f"edges-{place}",
                    setting_name(name).capitalize(),
                    of_edges,
                    "edges between the two categories in the tree",
                    runs=runs,
                )
            )
    if depths:
        blocks.append(
            Panels(
                depths,
                after="Errors in the same tree; to the right of 0 the category found is more specific.",
            )
        )
    if distances:
        blocks.append(Panels(distances, after="All errors; different trees are joined above their roots."))
    if len(found.models) > 1:
        blocks.append(error_table("The same of all models", settings, found.models, folded=True))
    return Section(
        "errors",
        "Errors of the first product",
        (),
        f"{model.upper()}: a category asks, and the product that came first "
        + ("is of another category." if found.protocol.relevance == "label" else "is not in it or below it."),
        blocks,
    )


def _siblings(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> list[Section]:
    model = found.baseline
    blocks: list[Block] = [
        sibling_table(setting_name(name).capitalize(), said["siblings"][model], said["errors"][model]["runs"])
        for name, said in settings.items()
        if said["siblings"][model]
    ]
    if not blocks:
        return []
    return [
        Section(
            "siblings",
            "Siblings taken for each other",
            (),
            f"{model.upper()}: products whose nearest category is the one beside their own.",
            blocks,
        )
    ]


def _examples(
    found: ModelsEvaluation, settings: Mapping[str, Numbers], test: Catalogue | None, thumbnails: Thumbnails
) -> list[Section]:
    model = found.baseline
    blocks: list[Any] = []
    for name, said in track(settings.items(), "pictures", unit="settings"):
        shown = [_shown(one, test, thumbnails) for one in said["examples"][model]]
        for right, what in ((True, "right"), (False, "wrong")):
            items = [one for one in shown if one.right == right]
            if items:
                blocks.append(Gallery(f"{setting_name(name).capitalize()}, {what}", items))
    if not blocks:
        return []
    return [
        Section(
            "examples",
            "First products",
            (),
            f"{model.upper()}, the first seed: for a category, the product that came first. Right ones are the surest "
            "of each tree, wrong ones the surest of each kind of error.",
            blocks,
        )
    ]


def _shown(one: Mapping[str, Any], test: Catalogue | None, thumbnails: Thumbnails) -> Shown:
    picture = None
    row = int(one["row"])
    if test is not None and test.picture_rows[row] >= 0:
        item = int(test.picture_rows[row])
        collection = test.collection
        picture = thumbnails.make(lambda: collection.image(item), str(one["product"]))
    return Shown(
        short_path(one["category"]),
        short_path(one["found"]),
        bool(one["right"]),
        str(one["kind"]),
        shorten(str(one["product"]), 60),
        shorten(str(one["title"]), 120),
        f"{one['score']:.3f}",
        picture,
    )


_SIDE = 220


def write_categories_page(path: Path | str, found: ModelsEvaluation, test: Catalogue | None = None) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    return write_page(path, categories_page(found, test))


def categories_page(found: ModelsEvaluation, test: Catalogue | None = None) -> Page:
    """The page; arguments as of :func:`write_categories_page`."""
    if test is not None and test.fingerprint != found.protocol.test:
        raise MismatchError(
            f"the evaluation ranked products {found.protocol.test}, these are {test.fingerprint}",
            "give the products that were evaluated",
        )
    settings: dict[str, Numbers] = dict(found.numbers["settings"])
    thumbnails = Thumbnails(_SIDE)
    sections = evaluated_sections(found, settings, test, thumbnails)
    unread = thumbnails.note()
    notes = [*found.notes, *([unread] if unread else [])]
    about, protocol = found.about, found.protocol
    return Page(
        "Pictures for categories",
        f"{len(found.models)} {'model' if len(found.models) == 1 else 'models'} in "
        f"{len(settings)} {'setting' if len(settings) == 1 else 'settings'}: {shorten(str(about['data']), 300)}",
        evaluation_headlines(settings),
        sections,
        {
            "data": str(about["data"]),
            "encoders": str(about["encoders"]),
            "protocol": protocol.line(),
            **{setting_name(name): str(said["line"]) for name, said in settings.items()},
            "intervals": _intervals(found.numbers["intervals"]),
            "fingerprint": found.protocol.key,
            "made with": f"diptych {about['diptych']}",
        },
        [shorten(note, 300) for note in notes],
        [_command(found)],
    )


def _intervals(how: Mapping[str, Any]) -> str:
    if not how["samples"]:
        return "none"
    return f"{100 * how['confidence']:g} %, {how['samples']:,} resamples of categories, seed {how['seed']}"


def _command(found: ModelsEvaluation) -> str:
    """The evaluation again."""
    protocol = found.protocol
    words = ["diptych", "categories", "evaluate", "DATA", "--out", "EVALUATION"]
    if protocol.given:
        words += ["--run", "RUN"]
    else:
        words += ["--model", ",".join(protocol.models), "--seeds", str(len(protocol.seeds))]
        words += ["--query", protocol.query] + (["--published"] if protocol.published else [])
    words += ["--setting", ",".join(protocol.settings), "--relevance", protocol.relevance]
    for what, value in found.about.get("encoders asked for", ()):
        words += [f"--{what.replace(' ', '-')}" + ("" if "option" in what else "-encoder"), str(value)]
    return shlex.join(words)
