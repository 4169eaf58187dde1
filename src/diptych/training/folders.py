"""Evaluations of runs found on disk, of one or of several seeds."""

from pathlib import Path

from diptych.core.errors import UsageError
from diptych.core.reading import read_toml
from diptych.evaluation.result import Result

_MARKER = "evaluation.json"


def evaluation_folder(path: Path | str, name: str | None = None) -> Path | None:
    """The one evaluation that ``path`` means; None where there is none.

    That is ``path`` itself, ``path/evaluation`` (what ``diptych evaluate --out`` writes), or of a run's
    ``evaluation/`` the one called ``name``, else the only one, else the one of its test split.
    """
    path = Path(path)
    for folder in (path, path / "evaluation"):
        if name is None and (folder / _MARKER).is_file():
            return folder
    found = {file.parent.name: file.parent for file in sorted(path.glob(f"evaluation/*/{_MARKER}"))}
    if name is not None:
        if (path / _MARKER).is_file():
            raise UsageError(f"{path} is an evaluation itself", "leave --evaluation out")
        if not found:
            return None
        if name not in found:
            raise UsageError(f"{path} has no evaluation called {name!r}", f"it has: {', '.join(found)}")
        return found[name]
    if len(found) > 1 and (path / "run.json").is_file():
        test = read_toml(path / "recipe.toml").get("data", {}).get("test", "test")
        found = {key: folder for key, folder in found.items() if key.endswith(f"-{test}")} or found
    if len(found) > 1:
        raise UsageError(
            f"{path} has {len(found)} evaluations: {', '.join(found)}",
            f"name one with --evaluation, or give its folder, for example {next(iter(found.values()))}",
        )
    return next(iter(found.values()), None)


def the_evaluation(path: Path | str, name: str | None = None) -> Path:
    """Return the folder of the evaluation that ``path`` means; UsageError where there is none."""
    found = evaluation_folder(path, name)
    if found is None:
        more = "" if (Path(path) / "run.json").is_file() else " --data DATA --out FOLDER, and name FOLDER"
        raise UsageError(f"{path} holds no evaluation", f"run: diptych evaluate {path}{more}")
    return found


def evaluations_of(path: Path | str, name: str | None = None) -> list[Result]:
    """The evaluation that ``path`` means, or those of the runs in it: several seeds of one recipe."""
    path = Path(path)
    if not path.is_dir():
        raise UsageError(f"{path} is no folder", "give an evaluation, a run or a folder of runs")
    one = evaluation_folder(path, name)
    if one is not None:
        return [Result.open(one)]
    if (path / "run.json").is_file():
        raise UsageError(f"{path} was not evaluated", f"run: diptych evaluate {path}")
    inside = sorted(
        folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith(".")
    )
    folders = {folder.name: evaluation_folder(folder, name) for folder in inside}
    runs = [folder.name for folder in inside if (folder / "run.json").is_file()]
    missing = [run for run in runs if folders[run] is None]
    if missing:
        raise UsageError(
            f"{path}: {', '.join(missing)} of {len(runs)} runs was not evaluated",
            f"run: diptych evaluate {path / missing[0]}",
        )
    found = [folder for folder in folders.values() if folder is not None]
    if not found:
        raise UsageError(
            f"{path} holds no evaluation and no run that was evaluated", "run: diptych evaluate RUN"
        )
    return [Result.open(folder) for folder in found]
