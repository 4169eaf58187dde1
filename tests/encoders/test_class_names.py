from __future__ import annotations

from pathlib import Path

import pytest

from diptych.core.errors import StorageError, UsageError
from diptych.encoders.conse import class_texts


def test_imagenets_names_are_in_the_order_of_the_usual_outputs(tmp_path: Path) -> None:
    names = class_texts("imagenet-1k", tmp_path)
    assert len(names) == 1000
    assert (names[0], names[281], names[430]) == ("tench, Tinca tinca", "tabby, tabby cat", "basketball")


def test_definitions_follow_the_name(tmp_path: Path) -> None:
    texts = class_texts("imagenet-1k-definitions", tmp_path)
    assert texts[281] == "tabby, tabby cat: a cat with a grey or tawny coat mottled with black"


def test_a_template_surrounds_each_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text(" a dog\nred {ball}\n", encoding="utf-8")
    texts = class_texts("names.txt", tmp_path, "a photo of {name}.")
    assert texts == ["a photo of a dog.", "a photo of red {ball}."]
    assert class_texts(str(tmp_path / "names.txt"), Path("elsewhere")) == ["a dog", "red {ball}"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"dog\n\ncat\n", "nothing in line 2"), (b"\xff\xfe", "is not UTF-8")],
)
def test_a_file_that_is_no_list_of_names_is_told(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(StorageError, match=message):
        class_texts("names.txt", tmp_path)


def test_unknown_sets_and_templates_without_a_place_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a set of classes that timm knows nor a file") as caught:
        class_texts("imagenet-2k", tmp_path)
    assert "imagenet-1k" in caught.value.fix
    with pytest.raises(UsageError, match="no place for a name"):
        class_texts("imagenet-1k", tmp_path, "a photo of name")
