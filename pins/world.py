"""The small data sets and runs that pins share, each made once per process and by the command line."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pins.adapters import diptych

RECIPE = Path(__file__).resolve().parent / "recipe.toml"
CATEGORIES = ("--query=name", "--set=epochs=12", "--set=hidden=32", "--set=width=24", "--text-encoder=lsa:32")
"""A small category model."""
PUBLISHED = ("--set=vocabulary.terms=pieces", "--set=loss.words=0")
"""A sparse head as in its paper: over pieces of words, and learning from scores alone."""


class World:
    """A folder, and what is made in it when a pin asks for it.

    Attributes:
        studies: where studies are run, or where their finished folders are.
        finished_studies: whether they are read instead of run.
        done_studies: those that this process has run.
    """

    def __init__(self, folder: Path, studies: Path | None = None) -> None:
        self.folder = folder
        self.studies = studies or folder.parent / "studies"
        self.finished_studies = studies is not None
        self.done_studies: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def scenes(self) -> Path:
        """200 + 24 + 40 scenes with three captions each."""
        return self._scenes("scenes", train=200, val=24, test=40, captions=3)

    @cached_property
    def few_scenes(self) -> Path:
        """24 + 8 + 12 scenes with two captions each, for trainings of a few steps."""
        return self._scenes("few-scenes", train=24, val=8, test=12, captions=2)

    def _scenes(self, name: str, *, train: int, val: int, test: int, captions: int) -> Path:
        out = self.folder / name
        sizes = (f"--train={train}", f"--val={val}", f"--test={test}", f"--captions={captions}")
        diptych("data", "scenes", *sizes, "--size=32", "--workers=1", f"--out={out}")
        return out

    @cached_property
    def run(self) -> Path:
        """A dual encoder trained on the scenes for a few epochs."""
        out = self.folder / "run"
        options = ("--set=batches.size=24", "--set=stages.0.epochs=5", "--set=batches.plan=distinct")
        self.train(out, self.scenes, *options)
        return out

    def train(self, out: Path, data: Path, *options: str, code: int = 0) -> None:
        """``diptych train`` with the pins' recipe."""
        given = (f"--data={data}", "--accelerator=cpu", *options, f"--out={out}")
        diptych("train", str(RECIPE), *given, code=code)

    @cached_property
    def head(self) -> Path:
        """A sparse head on the run."""
        out = self.folder / "head"
        options = (
            *PUBLISHED,
            "--eta=1e-3",
            "--set=training.epochs=3",
            "--set=training.batch_size=16",
            "--accelerator=cpu",
        )
        diptych("sparse", "train", str(self.run), *options, f"--out={out}")
        return out

    @cached_property
    def log(self) -> Path:
        """The raw log of a shop with 5,000 visitors, ingested."""
        raw, out = self.folder / "raw-log", self.folder / "log"
        diptych("data", "shop-log", "--visitors=5000", "--dirt=0.02", f"--out={raw}")
        diptych("intent", "ingest", str(raw), "--zone=Europe/Amsterdam", "--threads=1", f"--out={out}")
        return out

    @cached_property
    def features(self) -> Path:
        """The features of the log's sessions."""
        out = self.folder / "features"
        diptych("intent", "features", str(self.log), "--export", f"--out={out}")
        return out

    @cached_property
    def category_run(self) -> Path:
        """A category model trained on the shop."""
        out = self.folder / "category-run"
        diptych("categories", "train", str(self.shop), *CATEGORIES, "--setting=most-specific", f"--out={out}")
        return out

    @cached_property
    def shop(self) -> Path:
        """Products of a small shop, some of them without a picture, a title, attributes or a category."""
        out = self.folder / "shop"
        lacks = ("--without-category=0.1", "--without-picture=0.05", "--without-title=0.05")
        diptych(
            "data",
            "products",
            "--n=120",
            "--levels=2-3",
            "--size=32",
            *lacks,
            "--workers=1",
            f"--out={out}",
        )
        return out
