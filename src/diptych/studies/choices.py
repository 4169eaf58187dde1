"""What the command line takes of a study: on which data it is run, which rows and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import field_validator, model_validator

from diptych.core.errors import UsageError
from diptych.core.options import Options, command_line, parameter, parse_values
from diptych.data.several import DataChoices
from diptych.studies.plan import POSITIVES_OPTION, Choices, LogData
from diptych.studies.results import Results
from diptych.studies.runner import run_study
from diptych.studies.study import SettingName, Study
from diptych.training.recipe import PATHS, whole_paths


class StudyData(DataChoices):
    """Which data a study is run on."""

    def choices(self, study: Study) -> dict[str, Any]:
        """Return what these are among the choices of who runs a study."""
        if study.several:
            return {"collections": self.several()}
        return {"log": self._log(study.name)} if study.of == "log" else {"data": self.one()}

    def _log(self, name: str) -> LogData | None:
        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {name} is of a shop's log", f"leave {flag} out")
        self.check_one(f"{name} is of one log")
        options = parse_values(self.reader_option, "--reader-option")
        return LogData(Path(self.data[0]), next(iter(self.reader), None), options) if self.data else None


class RunOptions(Options):
    """Which rows of a study are run, and how."""

    rows: str | None = parameter(None, "Names or the paper's numbers, with commas: 1.1,1.2.")
    seeds: str | None = parameter(None, "With commas: 0,1,2.", default="the setting's own")
    quick: bool = parameter(False, "On generated data, in minutes.")
    all_: bool = parameter(False, "Every study, and one page over all of them.", "--all")
    setting: SettingName | None = parameter(
        None,
        "How rows are trained: as the paper says, or as its code does (published).",
        default="paper on the paper's datasets, data on others",
    )
    targets: str | None = parameter(
        None, "Latent targets: a sentence-transformers model's folder or name, or lsa."
    )
    regions: Path | None = parameter(None, "An .npy file of region features, for VSRN.")
    positives: str | None = parameter(None, "Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.")
    positives_option: list[str] = parameter([], "KEY=VALUE, e.g. originals=true. Repeatable.")
    set_: list[str] = parameter(
        [],
        "KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, e.g. "
        "clip=ENCODER. Repeatable.",
        "--set",
    )
    features: Path | None = parameter(None, "Folder of cached backbone features.")
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")
    devices: int = parameter(1, "Processes that share each batch.", ge=1)

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
    if not data.data and setting != "quick" and study.of != "nothing":
        what = "log" if study.of == "log" else "dataset"
        fix = f"give a {what} with --data, or --quick for generated data"
        raise UsageError(f"no data given for {study.name}", fix)
    given = {row.given for row in (*study.rows, *study.bases) if row.given}
    choices = Choices(
        setting=setting,
        regions=None if options.regions is None else str(options.regions.resolve()),
        values=whole_paths(parse_values(options.set_, "--set"), {*PATHS, *given, *study.paths}),
        targets=options.targets,
        positives=options.positives and POSITIVES_OPTION.join([options.positives, *options.positives_option]),
        **data.choices(study),
    )
    words, apart = ("diptych", "study", "run", study.name), ("features", "accelerator", "devices")
    rows = [part.strip() for part in (options.rows or "").split(",") if part.strip()]
    return run_study(
        study,
        folder,
        choices,
        rows=rows or None,
        seeds=None if options.seeds is None else [int(part) for part in options.seeds.split(",")],
        features_root=options.features,
        accelerator=options.accelerator,
        devices=options.devices,
        command=command_line(words, data, options, left_out=apart),
    )
