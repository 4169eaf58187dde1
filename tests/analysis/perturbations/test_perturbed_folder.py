"""Perturbed captions in files, and captions from files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    TextPerturbation,
    choose_perturbations,
    perturb_captions,
)
from diptych.analysis.perturbations.perturbed_folder import (
    CaptionList,
    check_perturbations,
    perturbed_over,
    write_perturbed,
)
from diptych.core.errors import DataError, UsageError
from diptych.data.language import Language


class CountingTagger:
    """Nouns are words in ``-g``; counts how often it is asked."""

    name, fingerprint = "by ending", "0"

    def __init__(self) -> None:
        self.calls = 0

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        self.calls += 1
        return [["NN" if word.endswith("g") else "DT" for word in words] for words in sentences]


def kinds(*names: str) -> list[TextPerturbation]:
    found = [PERTURBATIONS.get(name) for name in names]
    return [one for one in found if isinstance(one, TextPerturbation)]


CAPTIONS = CaptionList("pets", ["a dog and a pig", "🎉", "שלום עולם"], ["x", "y", "z"], ["p", "p", "q"])


def test_files_say_what_became_of_every_caption(tmp_path: Path) -> None:
    tagger = CountingTagger()
    chosen = kinds("shuffle-nouns-and-adjectives", "shuffle-all-but-nouns-and-adjectives", "character-swap")
    results = perturbed_over(
        CAPTIONS,
        chosen,
        seeds=(0, 5),
        options={"character-swap": {"edits": 2}},
        language=Language("t", tagger),
    )
    files = write_perturbed(tmp_path / "out", CAPTIONS, results, {"language": "t"})
    assert tagger.calls == 1
    assert [file.name for file in files] == [f"{one.name}-{seed}.jsonl" for one in chosen for seed in (0, 5)]
    nouns = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    assert nouns == [
        {
            "id": "x",
            "image": "p",
            "caption": "a dog and a pig",
            "perturbed": "a pig and a dog",
            "changed": True,
        },
        {"id": "y", "image": "p", "caption": "🎉", "perturbed": "🎉", "changed": False},
        {"id": "z", "image": "q", "caption": "שלום עולם", "perturbed": "שלום עולם", "changed": False},
    ]
    swapped = perturb_captions(chosen[2], CAPTIONS.captions, CAPTIONS.ids, seed=5, options={"edits": 2})
    written = [json.loads(line)["perturbed"] for line in files[5].read_text(encoding="utf-8").splitlines()]
    assert written == swapped.texts
    summary = json.loads((tmp_path / "out" / "perturbations.json").read_text(encoding="utf-8"))
    assert (summary["captions of"], summary["captions"], summary["language"]) == ("pets", 3, "t")
    assert summary["perturbations"][0] == {
        "file": "shuffle-nouns-and-adjectives-0.jsonl",
        "name": "shuffle-nouns-and-adjectives",
        "seed": 0,
        "compat": "none",
        "options": {},
        "captions": 3,
        "changed": 1,
        "unchanged": {"no two different nouns or adjectives": 2},
    }
    assert summary["perturbations"][5]["options"] == {"edits": 2}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds other things"):
        write_perturbed(tmp_path, CAPTIONS, perturbed_over(CAPTIONS, kinds("character-swap")))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_what_cannot_be_is_said_before_anything_is_done() -> None:
    chosen = kinds("character-swap", "typing-errors")
    with pytest.raises(UsageError, match="typing-errors has no published form"):
        check_perturbations(chosen, {}, "published")
    with pytest.raises(UsageError, match="options of extra-character, which was not asked for"):
        check_perturbations(chosen, {"extra-character": {"edits": 2}}, "none")
    with pytest.raises(UsageError, match="option 'rate'"):
        check_perturbations(chosen, {"typing-errors": {"rate": 2}}, "none")
    with pytest.raises(UsageError, match="needs a part-of-speech tagger"):
        list(perturbed_over(CAPTIONS, kinds("shuffle-nouns-and-adjectives")))
    tagger, thirteen = CountingTagger(), choose_perturbations(["thesis"])
    with pytest.raises(UsageError, match="synonym-adjective needs a WordNet"):
        next(perturbed_over(CAPTIONS, kinds(*(one.name for one in thirteen)), language=Language("t", tagger)))
    assert tagger.calls == 0


def test_half_a_character_is_written_and_read_back(tmp_path: Path) -> None:
    odd = CaptionList("odd", ["a \ud800 dog"], ["\udc00"])
    (file,) = write_perturbed(tmp_path / "out", odd, perturbed_over(odd, kinds("distraction-true")))
    assert file.read_bytes().isascii()
    assert file.read_bytes().endswith(b"}\n")
    line = json.loads(file.read_text(encoding="utf-8"))
    assert (line["id"], line["caption"]) == ("\udc00", "a \ud800 dog")
    assert line["perturbed"] == "a \ud800 dog and true is true"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\na dog\n\n", ["", "a dog", ""]),
        (b"a dog\n\ncat", ["a dog", "", "cat"]),
        (b"\xef\xbb\xbfa dog\r\ncat\r\n", ["a dog", "cat"]),
        ("a\u2028b\n".encode(), ["a\u2028b"]),
    ],
)
def test_captions_of_lines(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    file = tmp_path / "pets.txt"
    file.write_bytes(content)
    read = CaptionList.of_lines(file)
    assert list(read.captions) == expected
    assert list(read.ids) == [str(number) for number in range(1, len(expected) + 1)]
    assert (read.name, read.images) == ("pets", None)


def test_lines_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no.txt does not exist"):
        CaptionList.of_lines(tmp_path / "no.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        CaptionList.of_lines(tmp_path / "latin.txt")
