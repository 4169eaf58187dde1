"""What the command line takes of a study: on which data it is run, which rows and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from diptych.core.errors import UsageError
from diptych.core.options import Options, command_line, parameter, parse_values
from diptych.data.several import DataChoices
from diptych.studies.results import Results
from diptych.studies.rows import Choices, LogSource, path_keys
from diptych.studies.runner import run_study
from diptych.studies.study import Study
from diptych.training.recipe import whole_paths


class StudyData(DataChoices):
    """Which data a study is run on."""

    def choices(self, study: Study) -> dict[str, Any]:
        """Return what these are among the choices of who runs a study."""
        if study.several:
            return {"collections": self.several()}
        return {"log": self._log(study.name)} if study.of_logs else {"data": self.one()}

    def _log(self, name: str) -> LogSource | None:
        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {name} is of a shop's log", f"leave {flag} out")
        self.check_one(f"{name} is of one log")
        options = parse_values(self.reader_option, "--reader-option")
        return LogSource(Path(self.data[0]), next(iter(self.reader), None), options) if self.data else None


class RunOptions(Options):
    """Which rows of a study are run, and how."""

    rows: str | None = parameter(None, "Names or the paper's numbers, with commas: 1.1,1.2.")
    seeds: str | None = parameter(None, "With commas: 0,1,2.", default="the setting's own")
    quick: bool = parameter(False, "On generated data, in minutes.")
    setting: Literal["paper", "data", "quick"] | None = parameter(
        None, "How rows are trained.", default="paper on the paper's datasets, data on others"
    )
    targets: str | None = parameter(
        None, "Latent targets: a sentence-transformers model's folder or name, or lsa."
    )
    regions: Path | None = parameter(None, "An .npy file of region features, for VSRN.")
    positives: str | None = parameter(None, "Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.")
    set_: list[str] = parameter(
        [],
        "KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, e.g. "
        "clip=ENCODER. Repeatable.",
        "--set",
    )
    features: Path | None = parameter(None, "Folder of cached backbone features.")
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")

    @field_validator("seeds")
    @classmethod
    def _are_numbers(cls, seeds: str | None) -> str | None:
        if seeds is not None and not all(part.strip().isdecimal() for part in seeds.split(",")):
            raise ValueError("give whole numbers from 0 with commas, e.g. --seeds 0,1,2")
        return seeds

    @model_validator(mode="after")
    def _is_one_setting(self) -> Self:
        if self.quick and self.setting not in (None, "quick"):
            raise ValueError(f"--quick and --setting {self.setting}: give one of them")
        return self


def run_chosen(study: Study, folder: Path, data: StudyData, options: RunOptions) -> Results:
    """Run a study as :func:`~diptych.studies.runner.run_study` does; reports have the command that repeats it."""
    setting = "quick" if options.quick else options.setting
    if not data.data and setting != "quick" and not study.without_data:
        fix = f"give a {'log' if study.of_logs else 'dataset'} with --data, or --quick for generated data"
        raise UsageError(f"no data given for {study.name}", fix)
    choices = Choices(
        setting=setting,
        regions=None if options.regions is None else str(options.regions.resolve()),
        values=whole_paths(parse_values(options.set_, "--set"), path_keys(study)),
        targets=options.targets,
        positives=options.positives,
        **data.choices(study),
    )
    words, beside = ("diptych", "study", "run", study.name), ("features", "accelerator")
    rows = [part.strip() for part in (options.rows or "").split(",") if part.strip()]
    return run_study(
        study,
        folder,
        choices,
        rows=rows or None,
        seeds=None if options.seeds is None else [int(part) for part in options.seeds.split(",")],
        features_root=options.features,
        accelerator=options.accelerator,
        command=command_line(words, data, options, left_out=beside),
    )
