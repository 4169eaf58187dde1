"""How many of the terms that heads show describe an image: a pool of terms to judge, and the count afterwards.

``python -m benchmarks.terms POOL HEAD [HEAD …]`` takes ten test images, evenly spaced, and of each head (folders of
``diptych sparse train`` over the same data) the ten heaviest terms of each image: as the head weighs them, special
ones left out, and as they are shown. It writes into the folder POOL a sheet of the images (``images.html``) and
``judged.json`` with the terms of all heads together, in the order of the alphabet, so that a judge does not see whose
a term is. Write ``describes``, ``wrong`` or ``empty`` behind each, as docs/explanation/readable-terms.md says, and
repeat the command: it counts. Marks, pieces and function words are empty without being judged; so are missing terms.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.report.document import Card, Gallery
from diptych.report.sheets import write_sheet
from diptych.sparse.explain import BagReader, top_terms
from diptych.sparse.vocabulary import is_content

IMAGES, TERMS = 10, 10
VERDICTS = ("describes", "wrong", "empty")

Terms = dict[str, list[str]]  # of each image


def terms_of(reader: BagReader) -> dict[str, Terms]:
    """The terms of the images as the head weighs them and as they are shown."""
    vocabulary, found = reader.vocabulary, dict[str, Terms]()
    for bag in reader.bags([], IMAGES):
        raw = top_terms(bag.row, vocabulary.terms, TERMS, vocabulary.special)
        found.setdefault("as weighed", {})[bag.name] = [term for term, _ in raw]
        found.setdefault("as shown", {})[bag.name] = [term for term, *_ in bag.top(vocabulary, TERMS)]
    return found


def pooled(lists: list[Terms], judged: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Every term to judge of every image, with the verdicts that are there."""
    terms = {
        image: sorted({term for one in lists for term in one[image] if is_content(term)})
        for image in lists[0]
    }
    return {
        image: {term: judged.get(image, {}).get(term, "") for term in some} for image, some in terms.items()
    }


def counted(terms: Terms, judged: dict[str, dict[str, str]]) -> Counter[str]:
    """How many of the terms have which verdict."""
    given = (judged[image].get(term, "empty") for image, some in terms.items() for term in some)
    counts = Counter(one or "not judged" for one in given)
    counts["empty"] += IMAGES * TERMS - counts.total()
    return counts


def main(folder: Path, heads: list[str]) -> None:
    """Write the pool, or count it where it is judged."""
    readers = {head: BagReader(Path(head), None) for head in heads}
    lists = {
        f"{head}, {way}": terms for head, reader in readers.items() for way, terms in terms_of(reader).items()
    }
    file = folder / "judged.json"
    folder.mkdir(parents=True, exist_ok=True)
    judged = pooled(list(lists.values()), read_json(file) if file.is_file() else {})
    write_json(file, judged)
    bags = readers[heads[0]].bags([], IMAGES)
    write_sheet(
        folder / "images.html", "Images to judge", [Gallery("", [Card(bag.name, bag.image) for bag in bags])]
    )
    for name, terms in lists.items():
        counts = counted(terms, judged)
        print(
            f"{name}: "
            + ", ".join(f"{counts[one]} {one}" for one in (*VERDICTS, "not judged") if counts[one])
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
