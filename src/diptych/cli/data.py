"""``diptych data``: known datasets, checks of one's own, generated data, and what reading captions needs."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, show, warn
from diptych.cli.verbs import completion
from diptych.commerce.scenes import shop_log as shop_logs
from diptych.commerce.scenes.products import (
    TRUTH,
    ProductOptions,
    make_product_scenes,
    read_product_scenes,
)
from diptych.core.files import write_json
from diptych.core.options import command_line, parameter
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.data.checking import check_dataset
from diptych.data.known import KNOWN
from diptych.data.language.open import find_resources
from diptych.data.scenes import make_scenes, read_scenes
from diptych.data.scenes.make import SceneOptions
from diptych.data.source import DataSource, DataSpec, OutOption, TargetOption
from diptych.data.vocabulary import words
from diptych.data.word_vectors import convert_word_vectors, stripped

_OWN = "own"
_NAMES = completion("diptych.data.known:KNOWN")
Name = Annotated[str, typer.Argument(help="diptych data list names them.", autocompletion=_NAMES)]


def list_() -> None:
    """List the datasets that are known.

    Examples:
        diptych data list
    """
    rows = [(one.name, one.centric or "both", one.description) for one in KNOWN]
    show(Table.of("known datasets", "", ("name", "centric", "what it is"), rows))
    next_step("diptych data show coco")


def show_dataset(name: Name) -> None:
    """Show a dataset: where it is, its licence, how to lay it out, its sizes, how it is read.

    Examples:
        diptych data show coco
    """
    one = KNOWN.get(name)
    show(*one.lines(), *one.tables())
    options = one.readings[0].options
    show(f"when it is there: diptych data check {name} FOLDER" + (f" {options}" if options else ""))


class CheckOptions(DataSource, OutOption):
    """Options of the check."""

    name: str = parameter(
        ..., f"A dataset that diptych data list names; {_OWN} for your own.", argument=True, metavar="NAME"
    )
    folder: Path = parameter(..., "Its folder or file.", argument=True, metavar="FOLDER")
    split: str | None = parameter(None, "Check only this part.")
    decode: bool = parameter(False, "Decode every image; without it files are only looked for.")
    workers: int | None = parameter(None, "Threads to decode with; as many as there are CPUs.", ge=0)


def check(options: CheckOptions) -> None:
    """Read a dataset and say what is there, what is missing and what to do next.

    Exit code 1 when something has to be put right.

    Examples:
        diptych data check coco coco --decode
        diptych data check flickr30k flickr30k --images images --out check.json
        diptych data check own shop.csv --reader-option caption_column=title
    """
    given = options.model_dump(include={"reader", "split", "decode", "workers"})
    name = None if options.name == _OWN else options.name
    found = check_dataset(name, options.folder, **given, **options.reader_options())
    show(f"{found.collection}  (reader {found.reader})", *found.tables())
    show(*(f"note: {note}" for note in found.notes))
    for problem in found.problems:
        warn(problem.what, "to do")
        warn(problem.fix, "  fix")
    show(found.verdict)
    if options.out is not None:
        write_json(options.out, {"complete": found.complete, "verdict": found.verdict, **asdict(found)})
        show(f"written to {options.out}")
    if not found.complete:
        raise typer.Exit(1)
    words = ["--data", options.folder, "--reader", found.reader]
    how = DataSource(images=options.images, reader_option=options.reader_option)
    show(f"commands read it with: {command_line(words, how)}")
    next_step("diptych info recipes")


def scenes(out: OutOption, options: SceneOptions) -> None:
    """Generate images of coloured objects with captions whose every fact is known.

    Without --out they go to the cache and are generated once. One object per image makes an object-centric
    collection.

    Examples:
        diptych data scenes --train 3000 --out scenes
        diptych data scenes --objects 1 --out objects
    """
    folder = make_scenes(out.out, **dict(options))
    show(read_scenes(folder).describe(), f"in {folder}")
    next_step(["diptych", "train", "scenes", "--data", folder])


def products(out: OutOption, options: ProductOptions) -> None:
    """Generate a shop's products: image, title, attributes and category path, for diptych categories.

    What is planted in them stands in truth.json.

    Examples:
        diptych data products --out shop
        diptych data products --n 500 --levels 2-4 --without-category 0.1 --out shop
    """
    folder = make_product_scenes(out.out, **dict(options))
    show(read_product_scenes(folder).describe(), _in(folder))
    name = "shop" if out.out is None else folder.name  # in the cache its name is a fingerprint
    next_step(["diptych", "categories", "train", folder, "--out", f"runs/{name}"])


def shop_log(out: OutOption, options: shop_logs.ShopLogOptions) -> None:
    """Generate a shop's log of visits, for diptych intent; what is planted in it stands in truth.json.

    Examples:
        diptych data shop-log --visitors 5000 --out visits
    """
    folder = shop_logs.make_shop_log(out.out, **dict(options))
    show(shop_logs.shown(read_json(folder / TRUTH)), _in(folder))
    next_step(["diptych", "intent", "ingest", folder, "--out", "log"])


def _in(folder: Path) -> str:
    return f"in {folder}; what is planted: {folder / TRUTH}"


class ResourceOptions(OutOption):
    """The folders of resources."""

    wordnet: Path | None = parameter(
        None, "A WordNet's folder or file.", default="DIPTYCH_WORDNET, or NLTK's data"
    )
    nltk_data: Path | None = parameter(None, "A folder of NLTK data.", default="where NLTK looks")
    check: bool = parameter(False, "Exit with code 1 if one cannot be used.")


def resources(options: ResourceOptions) -> None:
    """Show the language resources: a part-of-speech tagger and a WordNet.

    Perturbations that change nouns, adjectives or meanings need them, and so does granularity. For generated
    scenes they are built in; for everything else they are NLTK's tagger, and NLTK's or any other WordNet.

    Examples:
        diptych data resources --check
        diptych data resources --wordnet english-wordnet-2024.xml.gz
    """
    found = find_resources(options.wordnet, options.nltk_data)
    columns = ("name", "state", "version", "path")
    show(Table.of("language resources", "", columns, [[row[name] for name in columns] for row in found]))
    missing = [row for row in found if row["fix"]]
    show(*(f"to get the {row['name']}: {row['fix']}" for row in missing))
    if options.out is not None:
        write_json(options.out, {"resources": found})
        show(f"written to {options.out}")
    words = ("diptych", "data", *(["resources", "--check"] if missing else ["perturb", "--list"]))
    if missing and options.check:
        raise typer.Exit(1)
    next_step(command_line(words, options, left_out=("check", "out")))


class VectorOptions(DataSpec, TargetOption):
    """Options of keeping vectors."""

    file: Path = parameter(..., "The text file, plain or .gz.", argument=True, metavar="FILE")


def vectors(options: VectorOptions) -> None:
    """Convert a text file of word vectors (GloVe, word2vec) into what training reads, in bounded memory.

    With --data only the words of its captions are kept.

    Examples:
        diptych data vectors glove.840B.300d.txt --data flickr30k -o words.npz
    """
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    keep: set[str] = set()
    if options.data is not None:
        found = Counter(
            word
            for caption in collection_of(Data.model_validate(options.section())).captions
            for word in words(caption)
        )
        keep = {*found, *map(stripped, found)}
    count = convert_word_vectors(options.file, options.out, keep)
    show(f"{count:,} words{f' of {len(keep):,} requested' if keep else ''} in {options.out}")
    next_step(["diptych", "train", "vsepp", "--set", f"model.text.word_vectors={options.out}"])
