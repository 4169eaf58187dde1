"""Options that choose data: the dataset, how it is read, its part and its captions."""

from pathlib import Path
from typing import Any

from pydantic import field_validator

from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter, parse_values
from diptych.data.captions import parse_caption_choice


class OutOption(Options):
    out: Path | None = parameter(None, "Where to write.", "--out", "-o")


class TargetOption(Options):
    out: Path = parameter(..., "Where to write.", "--out", "-o")


class SamplesOption(Options):
    samples: int = parameter(1000, "Bootstrap resamples for 95 % intervals; 0 for none.", ge=0)


class SeedOption(Options):
    seed: int = parameter(0, "Of everything random: resamples, swaps, draws.", ge=0)


class DataSource(Options):
    images: Path | None = parameter(None, "Folder of images, if it lies elsewhere.")
    reader: str | None = parameter(
        None, "The data's format, if not recognised.", names="diptych.data.readers:READERS"
    )
    reader_option: list[str] = parameter([], "KEY=VALUE, e.g. test=0.2. Repeatable.")

    def reader_options(self) -> dict[str, Any]:
        options = parse_values(self.reader_option, "--reader-option")
        return options if self.images is None else {**options, "images": str(self.images.resolve())}


class DataSpec(DataSource):
    data: Path | None = parameter(
        None, "A dataset: a folder of images, Karpathy JSON, CSV, JSONL or Parquet pairs, …"
    )
    skip_bad_images: bool = parameter(False, "Leave out and count images that cannot be read.")

    def check_used(self) -> None:
        """Raise a UsageError for an option that says how data is read where none is named."""
        options = ("images", "reader", "reader_option", "skip_bad_images")
        given = [name.replace("_", "-") for name in options if getattr(self, name)]
        if given and self.data is None:
            raise UsageError(f"--{given[0]} without --data", "give --data: it says how that is read")

    def section(self, run: Any = None) -> dict[str, Any]:
        """Return the recipe's data section that this means; that of a training run where no data is named."""
        self.check_used()
        if self.data is None:
            if run is None:
                raise UsageError("no data given", "give a dataset with --data")
            return dict(run.recipe.data.model_dump(mode="json"))
        return {
            "path": str(self.data.resolve()) if self.data.exists() else str(self.data),
            "reader": self.reader,
            "options": self.reader_options(),
            "skip_bad_images": self.skip_bad_images,
        }


class SplitOption(Options):
    split: str | None = parameter(None, "The part of the data, or all; test where there is one.")


class CaptionsOption(Options):
    captions: str = parameter("all", "Of each image: all, first, first:K, random or random:SEED.")

    @field_validator("captions")
    @classmethod
    def _known(cls, captions: str) -> str:
        parse_caption_choice(captions)
        return captions


class PartSpec(DataSpec, SplitOption, CaptionsOption):
    """The data options with a split and a choice of captions."""
