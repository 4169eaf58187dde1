from __future__ import annotations

import pytest
from commands import Command, Done


@pytest.fixture
def diptych(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process; gives exit code, standard output, standard error."""
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it in its workers

    def run(*arguments: object) -> Done:
        from diptych.cli import main

        monkeypatch.setattr("sys.argv", ["diptych", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        code = caught.value.code
        return Done(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
