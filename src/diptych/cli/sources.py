"""From what a person names on the command line to encoders, collections and embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.options import parse_values
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.reading import read_json

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.encoded import EncodedCollection
    from diptych.training.run import Run


@dataclass(frozen=True)
class DataChoice:
    """The data options of a command."""

    data: Path | None = None
    images: Path | None = None
    reader: str | None = None
    reader_option: list[str] | None = None
    skip_bad_images: bool = False
    captions: str = "all"

    def section(self, run: Run | None) -> dict[str, Any]:
        """The recipe's data section that they mean; the run's own when they name no data."""
        if self.data is None:
            if run is None:
                raise UsageError("no data given", "give a dataset with --data")
            return run.recipe.data.model_dump(mode="json")
        options = parse_values(self.reader_option, "--reader-option")
        if self.images is not None:
            options["images"] = str(self.images.resolve())
        path = str(self.data.resolve()) if self.data.exists() else str(self.data)
        return {
            "path": path,
            "reader": self.reader,
            "options": options,
            "skip_bad_images": self.skip_bad_images,
        }


@dataclass(frozen=True)
class Work:
    """How embedding is shared; see :func:`diptych.encoders.encode.encode_collection`."""

    processes: int = 1
    accelerator: str = "auto"
    fabric: Any = None

    @property
    def device(self) -> str | None:
        """Where the encoder of this process belongs; with several it only says what the others load."""
        if self.fabric is not None:
            return str(self.fabric.device)
        if self.processes > 1:
            return "cpu"
        return {"auto": None, "gpu": "cuda"}.get(self.accelerator, self.accelerator)


@dataclass(frozen=True)
class Origin:
    """Where embeddings came from, so that a search can show what it found.

    Attributes:
        model: the run or encoder, as it was named.
        data: the recipe's data section.
        split: the part that was embedded; None for all.
        captions: which captions of each picture, as ``--captions`` takes it.
        centric: what the pictures show, ``scene`` or ``object``; None where nobody said.
    """

    model: str
    data: dict[str, Any]
    split: str | None
    captions: str = "all"
    centric: str | None = None

    @property
    def part(self) -> str:
        """The part and its captions, to be put into a folder's name."""
        chosen = "" if self.captions == "all" else f"-{self.captions.replace(':', '-')}"
        return f"{self.split or 'all'}{chosen}"

    def collection(self) -> Collection:
        """The collection that was embedded."""
        from diptych.data.captions import choose_captions
        from diptych.training.sections import Data
        from diptych.training.source import collection_of

        collection = collection_of(Data.model_validate(self.data))
        part = collection if self.split is None else collection.split(self.split)
        return choose_captions(part, self.captions)

    def said(self) -> dict[str, str]:
        """What numbers have to say of it besides dataset and split."""
        captions = {} if self.captions == "all" else {"captions": self.captions}
        return captions if self.centric is None else {"pictures": f"{self.centric}-centric", **captions}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Any, where: Path | str) -> Origin:
        """The inverse of :meth:`to_dict`."""
        try:
            captions, centric = str(said.get("captions", "all")), said.get("centric")
            return cls(str(said["model"]), dict(said["data"]), said["split"], captions, centric)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise StorageError(
                f"{where} does not say which encoder and data it was made of", "make it again"
            ) from None

    @classmethod
    def read(cls, folder: Path) -> Origin | None:
        """That of a folder that ``diptych embed`` wrote; None for another folder."""
        file = folder / "origin.json"
        return cls.from_dict(read_json(file), file) if file.is_file() else None


def check_still_there(model: str, made: Path | str) -> None:
    """See that the folder which ``made`` was made with lies where it lay."""
    place = Path(model.rpartition(":")[2])  # without the family's name
    if place.is_absolute() and not place.exists():
        raise UsageError(
            f"{made} was made with {model}, which is not there any more",
            "put it back, or make what was made with it again from where it is now",
        )


def encoder_of(model: str, device: str | None = None) -> tuple[DualEncoder, Run | None]:
    """The encoder of a run (its best) or of any other source, on ``device``, and the run when it is one."""
    from diptych.encoders.dual_encoder import DualEncoder

    run = _run_of(model)
    return DualEncoder.load(model if run is None else run.best, device=device), run


def encoder_source(model: str) -> str:
    """What ``DualEncoder.load`` takes: of a run its best encoder, anything else as it was named."""
    run = _run_of(model)
    return model if run is None else str(run.best.resolve())


def _run_of(model: str) -> Run | None:
    """The run that was named; None for another source."""
    if not (Path(model) / "run.json").is_file():
        return None
    from diptych.training.run import Run

    run = Run.open(model)
    if not run.best.is_dir():
        raise UsageError(f"{model} has no trained encoder yet", f"go on with: diptych train --resume {model}")
    return run


def encoded_of(
    source: str,
    choice: DataChoice,
    split: str | None,
    out: Path | None = None,
    look: Callable[[DualEncoder], object] | None = None,
    work: Work | None = None,
) -> tuple[EncodedCollection, Origin, Path]:
    """Embeddings of a folder that ``diptych embed`` wrote, or of a run or encoder, made now."""
    from diptych.data.captions import check_caption_choice
    from diptych.encoders.encoded import EncodedCollection
    from diptych.encoders.family import rooted

    check_caption_choice(choice.captions)
    folder = Path(source)
    given = Origin.read(folder)
    if given is not None:
        if choice.data is not None or split is not None or choice.captions != "all":
            raise UsageError(f"{source} is embedded already", "leave --data, --split and --captions out")
        return EncodedCollection.open(folder), given, folder
    if any(folder.glob("*.unfinished")):
        raise UsageError(f"{source} is not finished", "give the diptych embed that began it once more")
    work = work or Work()
    encoder, run = encoder_of(source, work.device)
    if look is not None:
        look(encoder)
    origin = Origin(rooted(source), choice.section(run), None, choice.captions)
    collection = origin.collection()
    if split is None:
        default = run.recipe.data.test if run is not None else "test"
        split = default if default in collection.split_sizes else None
    elif split == "all":
        split = None
    origin = replace(origin, split=split, centric=collection.centric)
    if out is None:
        if not folder.is_dir():
            raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
        out = folder / "embeddings" / safe_name(f"{collection.name}-{origin.part}")
    return encode_part(encoder, collection, origin, out, work), origin, out


def encode_part(
    encoder: DualEncoder, whole: Collection, origin: Origin, out: Path, work: Work | None = None
) -> EncodedCollection:
    """Embed the part of ``whole`` that ``origin`` names into ``out``, and say there where it is from."""
    from diptych.encoders.encode import encode_collection

    part = whole if origin.split is None else whole.split(origin.split)
    work = work or Work()
    encoded = encode_collection(
        encoder,
        part,
        out,
        origin.split,
        processes=work.processes,
        accelerator=work.accelerator,
        fabric=work.fabric,
    )
    if work.fabric is None or work.fabric.is_global_zero:
        write_json(out / "origin.json", origin.to_dict())
    return encoded
