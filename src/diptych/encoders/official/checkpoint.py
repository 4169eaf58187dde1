"""A published checkpoint as named tensors: one file, or a folder with one, read without running code of it."""

from __future__ import annotations

import argparse
import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import torch
from torch import Tensor

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.inputs import load_tensors

SUFFIXES = (".safetensors", ".th", ".pth", ".pt", ".bin")
_WRAPPERS = ("model", "state_dict", "model_state_dict")  # names under which a run's file holds the weights
_AGAIN = "download it again, and compare its size with the published one"
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")  # what a file asks for, in PyTorch's message

# What PyTorch raises of bytes that are no checkpoint.
_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, RuntimeError, ValueError, EOFError, LookupError, TypeError, AttributeError),
    *(AssertionError, ArithmeticError, MemoryError, struct.error, zipfile.BadZipFile),
)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Weights by the names of the published code, on the CPU; ``folder`` may hold files that belong to them."""

    state: Mapping[str, Tensor]
    name: str
    folder: Path | None = None
    prefix: str = ""  # of the names of one part; see :meth:`part`

    def part(self, prefix: str) -> Self:
        """Return the checkpoint with the names of one part, read without its ``prefix``."""
        return replace(self, prefix=prefix)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.state

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        value = self.state.get(self.prefix + name)
        if value is None or value.ndim != dimensions:
            what = "lacks" if value is None else f"has a {tuple(value.shape)}"
            raise StorageError(f"{self.name} {what} {self.prefix}{name}", _COMPARE)
        return tuple(value.shape)

    def count(self, before: str) -> int:
        """Count the numbers that follow ``before`` in the names."""
        pattern = re.compile(re.escape(self.prefix + before) + r"(\d+)\.")
        numbers = sorted({int(found[1]) for found in map(pattern.match, self.state) if found})
        if not numbers or numbers != list(range(len(numbers))):
            gap = next((row for row, number in enumerate(numbers) if row != number), 0)
            raise StorageError(f"{self.name} lacks {self.prefix}{before}{gap}.*", _COMPARE)
        return len(numbers)


_COMPARE = "it is corrupt, cut off or of another model: compare it with the published one"
_PRE_TRAINING = "pretraining:"


def split_stage(source: str | Path) -> tuple[Stage, Path]:
    stage: Stage = "pre-training" if str(source).startswith(_PRE_TRAINING) else "fine-tuned"
    return stage, Path(str(source).removeprefix(_PRE_TRAINING)).expanduser()


def find_checkpoint(source: str | Path) -> Path:
    """Return the checkpoint file that ``source`` is, or the only one in the folder that it is."""
    path = Path(source).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        raise UsageError(
            f"{source} is neither a file nor a folder",
            "give the checkpoint as its authors published it, or a folder with it: these models are on no hub",
        )
    found = sorted(file for file in path.iterdir() if file.is_file() and file.suffix in SUFFIXES)
    if len(found) != 1:
        names = ", ".join(file.name for file in found[:5])
        raise StorageError(
            f"{path} holds {len(found)} checkpoints" + (f": {names}" if names else ""),
            "give the file itself" if found else f"a checkpoint is a file called *{', *'.join(SUFFIXES)}",
        )
    return found[0]


def read_checkpoint(source: str | Path | Mapping[str, Any], part: int | None = None) -> Checkpoint:
    """Read a checkpoint file, the only one of a folder, or take weights in memory; files that run code are refused.

    Of a list of encoders, as VSE++ and VSRN write image and caption encoder, the one at ``part`` is read.
    """
    if isinstance(source, Mapping):
        return Checkpoint(_weights(source, "the weights given", part), "weights in memory")
    file = find_checkpoint(source)
    if file.suffix == ".safetensors":
        state: Any = load_tensors(file, _AGAIN)
    else:
        state = _unpickled(file)
    return Checkpoint(_weights(state, str(file), part), file.name, file.parent)


def _unpickled(file: Path) -> Any:
    try:
        # Mapped, so that an optimizer's moments or unused momentum weights stay on disk.
        mapped = _is_archive(file)
        # Options of a command line are stored with many weights; reading them runs no code.
        with warnings.catch_warnings(), torch.serialization.safe_globals([argparse.Namespace]):
            warnings.simplefilter("ignore")  # of old pickles: what cannot be read is an error below
            return torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        wants = _GLOBAL.search(str(error))
        asked = f"it asks for {wants[1]}, and such files can run code" if wants else "or it is corrupt"
        raise StorageError(
            f"{file} holds more than tensors and plain values, and is refused: {asked}",
            f"if you trust its source, write only its weights once, in an isolated environment: "
            f'torch.save(torch.load("{file.name}", map_location="cpu", weights_only=False)["model"], '
            f'"weights.pth")',
        ) from error
    except _DAMAGE as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0].partition(". ")[0]
        reason = f"{type(error).__name__}: {first}"
        raise StorageError(
            f"{file} is not a checkpoint of PyTorch, or is corrupt: {reason}", _AGAIN
        ) from error


def _is_archive(file: Path) -> bool:
    with file.open("rb") as opened:
        begin = opened.read(16)
    if not begin.startswith((b"PK", b"\x80")):
        raise StorageError(f"{file} is not a checkpoint of PyTorch: it begins with {begin!r}", _AGAIN)
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        packed = [entry.filename for entry in archive.infolist() if entry.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise StorageError(
            f"{file} holds packed entries ({packed[0]}), which PyTorch does not write",
            "it was packed again: give the checkpoint as it was published",
        )
    return True


def _weights(content: Any, source: str, part: int | None) -> dict[str, Tensor]:
    """Return the named tensors of a file's content, without wrapping and without what parallel training adds."""
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping | list):
            content = content[wrapper]
            break
    if part is not None and isinstance(content, list) and len(content) > part:
        content = content[part]
    if not isinstance(content, Mapping):
        raise StorageError(
            f"{source} holds a {type(content).__name__}, not weights by name",
            "give the model's checkpoint; image and caption encoder in one list: TwoTowerEncoder.load_published",
        )
    fault = next(filter(None, map(_fault, content.items())), "") if content else "nothing"
    if fault:
        raise StorageError(
            f"{source} holds {fault}: it is no list of weights",
            f"weights are named tensors, by themselves or under {' or '.join(map(repr, _WRAPPERS[:2]))}",
        )
    parallel = all(name.startswith("module.") for name in content)
    return {name.removeprefix("module.") if parallel else name: value for name, value in content.items()}


def _fault(entry: tuple[Any, Any]) -> str:
    name, value = entry
    if not isinstance(name, str):
        return f"{name!r}, which is no name"
    if not isinstance(value, Tensor):
        return f"{name!r}, which is no tensor"
    stored = not value.is_meta and value.layout == torch.strided
    # A tensor that repeats few numbers: weights never do, and copied they would be of any size.
    if stored and value.numel() * value.element_size() > value.untyped_storage().nbytes():
        return f"{name!r} of shape {tuple(value.shape)} with fewer numbers than that"
    return ""


# Whether a checkpoint was fine-tuned for retrieval, or is what fine-tuning starts from.
Stage: TypeAlias = Literal["fine-tuned", "pre-training"]

_DROPPED = re.compile(r"\w+_m\.|(image|text|idx)_queue$|(queue_ptr|ptr_queue)$")  # momentum copies, queues
_PRE_TRAINING_HEADS = re.compile(r"text_encoder\.cls\.|(bbox|mlm|mim)_head\.|text_decoder\.")
# Tables that follow from the sizes: they are made, not read.
FOLLOWING = re.compile(r".*\.(position_ids|relative_position_index|attn_mask)$")


@dataclass(frozen=True)
class Layout:
    model: str  # what papers call it
    family: str  # what ``DualEncoder.load`` calls it
    vision: str  # before the names of the image encoder
    pre_training: str  # before names that only a checkpoint of pre-training has


# By family.
LAYOUTS = {
    "albef": Layout("ALBEF", "albef", "visual_encoder.", "text_encoder.bert."),
    "xvlm": Layout("X-VLM", "xvlm", "vision_encoder.", "text_encoder.bert."),
    "blip": Layout("BLIP", "blip", "visual_encoder.", "text_decoder."),
}


_SWIN = r"(patch_embed\.norm|layers\.\d+\.blocks)\."
_BLIP_TEXT = r"text_decoder\.|text_encoder\.encoder\.layer\.0\.crossattention\."
_OF_TRANSFORMERS = (r"vision_model\.", r"text_encoder\.")
_CLIP = r"visual\.|vision_model\.|logit_scale$"
_WHOLE, _LOAD = "give the checkpoint of the whole model", "load it with "
# key, what some names of the weights begin with, what it is, how to load it; the first that fits
_KINDS = (
    (
        "blip",
        (r"visual_encoder\.", _BLIP_TEXT),
        "a BLIP checkpoint in its authors' layout",
        _LOAD + "blip:FILE",
    ),
    ("albef", (r"visual_encoder\.",), "an ALBEF checkpoint", _LOAD + "albef:FILE"),
    ("xvlm", (r"vision_encoder\." + _SWIN,), "an X-VLM checkpoint", _LOAD + "xvlm:FILE"),
    ("blip of transformers", _OF_TRANSFORMERS, "a BLIP model of transformers", _LOAD + "blip:FOLDER"),
    ("clip", (_CLIP,), "a CLIP-like model", "load its folder, or with open_clip:ARCHITECTURE/FILE"),
    ("swin", (_SWIN,), "only an image encoder (Swin)", _WHOLE),
    ("vit", (r"blocks\.\d+\.attn\.qkv",), "only an image encoder (ViT)", _WHOLE),
    ("bert", (r"(bert\.)?embeddings\.word_embeddings\.",), "only a text encoder (BERT)", _WHOLE),
)


def looks_like(names: Mapping[str, object]) -> str:
    """Return the key in ``_KINDS`` of a file with these weights; ``""`` for none."""
    return next(
        (key for key, some, *_ in _KINDS if all(any(re.match(one, name) for name in names) for one in some)),
        "",
    )


def advice(found: str, file: str | Path = "FILE") -> tuple[str, str]:
    """Return what a checkpoint is that :func:`looks_like` says ``found`` of, and how to load ``file``."""
    none = "none that is known", "only checkpoints of ALBEF, X-VLM and BLIP are"
    what, fix = next(((what, fix) for key, _, what, fix in _KINDS if key == found), none)
    return what, fix.replace("FILE", str(file))


def is_pre_training(names: Mapping[str, object], family: str) -> bool:
    """Return whether a checkpoint of ``family`` is one that fine-tuning starts from."""
    return any(name.startswith(LAYOUTS[family].pre_training) for name in names)


def describe(file: Path) -> list[tuple[str, str]]:
    """Return whose checkpoint a file of weights is, by their names."""
    state = read_checkpoint(file).state
    found = looks_like(state)
    what, load = advice(found, file)
    size = f"{len(state):,} names, {sum(value.numel() for value in state.values()):,} numbers"
    rows = [("kind", "checkpoint"), ("looks like", what), ("weights", size)]
    if found in LAYOUTS:
        begun = is_pre_training(state, found)
        rows.append(("stage", "pre-training" if begun else "fine-tuned"))
        load = load.replace(f"{found}:", f"{found}:pretraining:") if begun else load
    return [*rows, ("next", load)]


def listed(names: list[str], most: int = 3) -> str:
    return f"{len(names)} ({', '.join(names[:most])}{', …' if len(names) > most else ''})"


def retrieval_weights(checkpoint: Checkpoint, layout: Layout, stage: Stage) -> Checkpoint:
    """Return the weights that retrieval uses and what follows from them, by the names of a fine-tuned checkpoint."""
    state, source = checkpoint.state, checkpoint.name
    found = looks_like(state)
    if found != layout.family:
        what, fix = advice(found)
        if not found:
            what = f"{what}, with {listed(sorted(state))}"
        raise MismatchError(f"{source} is no checkpoint of {layout.model}: it looks like {what}", fix)
    parts = (layout.vision, "text_encoder.", "vision_proj.", "text_proj.", "itm_head.")
    missing = [part for part in parts if not any(name.startswith(part) for name in state)]
    if missing:
        raise StorageError(
            f"{source} lacks what retrieval needs: {', '.join(f'{part}*' for part in missing)}",
            "it is of another task, or cut off: give the checkpoint that was fine-tuned for retrieval",
        )
    pre_training = is_pre_training(state, layout.family)
    if pre_training != (stage == "pre-training"):
        holds, before = ("holds", "pretraining:") if pre_training else ("holds no", "")
        raise MismatchError(
            f"{source} {holds} {layout.pre_training}*: it is not a {stage} checkpoint of {layout.model}",
            f"on purpose, load it with {layout.family}:{before}FILE or another stage: every number then says so",
        )
    kept = {name: value for name, value in state.items() if not _DROPPED.match(name)}
    if pre_training:
        kept = {
            name.replace("text_encoder.bert.", "text_encoder.", 1): value
            for name, value in kept.items()
            if not _PRE_TRAINING_HEADS.match(name)
        }
    return replace(checkpoint, state=kept)
