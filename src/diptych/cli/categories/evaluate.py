"""``diptych categories evaluate``: how well models find products for categories, in every setting."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from diptych.cli.categories.sources import SETTINGS, EncoderSpec, HeadOptions, ProductData
from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.core.errors import UsageError

_FITTING = {"model", "query", "published", "set_", "seeds", "jobs"}


class EvaluateOptions(HeadOptions):
    """Which models are measured, and how."""

    model: list[str] = Field(
        [],
        description="bm25, clip, sentence, clip-i … clip-ita. Repeatable.",
        json_schema_extra={"default": "all possible"},
    )
    setting: list[str] = Field(
        [],
        description="all, most-general, most-specific. Repeatable.",
        json_schema_extra={"names": SETTINGS, "default": "all three"},
    )
    seeds: int = Field(3, ge=1, description="Trainings of each model.")
    run: Path | None = Field(None, description="Measure a run on the products that it has not seen.")
    relevance: Literal["label", "path"] = Field(
        "label", description="path: the categories above are right, too."
    )
    samples: int = Field(1000, ge=0, description="Bootstrap resamples for 95 % intervals; 0 for none.")
    judged_seed: int = Field(0, ge=0, description="Of categories drawn in the setting all.")
    jobs: int = Field(
        1,
        ge=1,
        description="Processes; the numbers do not depend on it.",
        json_schema_extra={"flags": ["--jobs", "-j"]},
    )

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        if self.published and self.set_:
            raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
        usual = {name: EvaluateOptions.model_fields[name].default for name in _FITTING}
        if self.run is not None and self.model_dump(include=_FITTING) != usual:
            raise UsageError("a run is measured as it is", "leave out what makes or trains models")
        return self


def evaluate(products: ProductData, encoders: EncoderSpec, options: EvaluateOptions) -> None:
    """Train and measure models of categories and products: tables and a page.

    After any interruption the same command resumes. A finished folder may grow by models, settings and seeds.

    Examples:
        diptych categories evaluate shop --out evaluation
        diptych categories evaluate shop --out thesis --published --seeds 5 -j 4
        diptych categories evaluate shop --out few --model bm25,clip-i
        diptych categories evaluate new-products --out held-out --run runs/shop
    """
    from diptych.commerce.category_to_image.application import evaluate_catalogue, evaluate_run
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.tables import evaluation_tables
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.categories import evaluation_page

    run, out = options.run, options.out
    if run is not None and encoders != EncoderSpec():
        raise UsageError("a run is measured as it is", "leave out the encoders")
    common: dict[str, Any] = {
        "settings": _names(options.setting),
        "relevance": options.relevance,
        "judged_seed": options.judged_seed,
        "bootstrap": Bootstrap(options.samples),
    }
    with progress(), stop_on_signal():
        catalogue, source = products.read_products()
        about = {"source": asdict(source), "encoders asked for": encoders.given if run is None else []}
        if run is not None:
            found, test = evaluate_run(CategoryRun.open(run), catalogue, out, about=about, **common)
        else:
            found, test = evaluate_catalogue(
                catalogue,
                encoders.maker(catalogue),
                out,
                models=_names(options.model),
                seeds=tuple(range(options.seeds)),
                options=options.training({}, "--seeds") if options.set_ else None,
                about=about,
                **options.model_dump(include={"query", "published", "jobs"}),
                **common,
            )
        page = evaluation_page(found, test).save(out / "report.html")
    show(*(table for part in evaluation_tables(found).values() for table in part if not table.folded))
    for name, reason in found.left_out.items():
        say(f"left out: {name}: {reason}")
    say(found.line())
    say(f"every value in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])


def _names(given: list[str]) -> list[str] | None:
    """Return the names of an option that may be repeated or have commas; None when it was not given."""
    return [name for text in given for name in text.split(",") if name] if given else None
