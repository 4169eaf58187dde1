from __future__ import annotations

from pathlib import Path

import pytest

from diptych.core.errors import StorageError, UsageError
from diptych.core.working import working_in


def test_a_new_folder_is_made_and_one_of_its_kind_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with working_in(folder, "kind.json"):
        (folder / "kind.json").write_text("{}")
    (folder / ".kind.json.77.tmp").write_text("half")
    with (
        working_in(folder, "kind.json"),
        pytest.raises(StorageError, match="another process"),
        working_in(folder, "kind.json"),
    ):
        pass
    assert [file.name for file in folder.iterdir()] == ["kind.json"]


def test_what_a_kill_left_at_the_very_beginning_is_no_other_thing(tmp_path: Path) -> None:
    (tmp_path / ".kind.json.77.tmp").write_text("half")
    with working_in(tmp_path, "kind.json"):
        assert not list(tmp_path.iterdir())


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    with pytest.raises(UsageError, match="holds other things"), working_in(tmp_path, "kind.json"):
        pass
