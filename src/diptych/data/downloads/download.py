"""Downloading pictures: polite to hosts, safe to stop, the same command goes on."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.alone import alone_in
from diptych.core.errors import Interrupted
from diptych.core.files import check_replaceable
from diptych.core.progress import task
from diptych.data.downloads.fetching import Fetcher
from diptych.data.downloads.journal import JOURNAL, Journal
from diptych.data.downloads.options import DownloadOptions
from diptych.data.downloads.pictures import keep_picture, looked_at
from diptych.data.downloads.robots import Robots
from diptych.data.downloads.trouble import Stopped, Trouble
from diptych.data.downloads.turns import Turns
from diptych.data.downloads.wanted import Wanted, checked
from diptych.data.downloads.work import Job, Work

__all__ = ["Downloads", "download_pictures"]


@dataclass(frozen=True)
class Downloads:
    """What a download did.

    Attributes:
        folder: where the pictures and ``downloads.jsonl`` are.
        wanted: how many pictures were asked for.
        there: of them, those that are in the folder now.
        fetched: of those, the ones that this call brought.
        failures: of them, those that did not come, as the journal has them: ``id``, ``address``, ``kind``, ``error``.
        left: those not tried yet: beyond the limit, or of hosts that were given up.
        given_up: host → why it was left for another time.
    """

    folder: Path
    wanted: int
    there: int
    fetched: int
    failures: tuple[Mapping[str, Any], ...]
    left: int
    given_up: Mapping[str, str]

    @property
    def reasons(self) -> dict[str, int]:
        """How many failed for which kind of reason, most frequent first."""
        return dict(Counter(str(one["kind"]) for one in self.failures).most_common())


def download_pictures(
    wanted: Iterable[Wanted],
    folder: Path | str,
    options: DownloadOptions,
    *,
    limit: int | None = None,
    retry_failed: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Downloads:
    """Fetch pictures into ``folder`` as ``NAME.ENDING``, where NAME is :func:`~diptych.data.products.picture_name`.

    What is there is not fetched again, and what failed is not tried again unless asked. Bytes are kept as they came,
    once they were decoded as a picture. Killed at any moment, the same call goes on; at most the pictures on their way
    are asked for again. Hosts are called directly: proxies of the environment are not used.

    Args:
        wanted: ids and addresses; items of one address are fetched once.
        folder: new, empty, or of an earlier call.
        options: contact, rates, limits.
        limit: try at most so many addresses now.
        retry_failed: try those again that failed before.
        should_stop: asked now and then.

    Raises:
        DataError: an id that occurs twice.
        UsageError: the folder holds other things.
        StorageError: the folder cannot be written, or another process is at work in it.
        MissingExtraError: httpcore is not installed.
        Interrupted: ``should_stop`` said so; what came is in the journal.
    """
    asked, folder = list(checked(wanted)), Path(folder)
    stop = threading.Event()
    turns = Turns(options.rate, options.connections, stop)
    with ExitStack() as stack:
        fetcher = Fetcher(options, turns)
        stack.callback(fetcher.close)
        check_replaceable(folder, JOURNAL)  # before anything in it is touched
        stack.enter_context(alone_in(folder))
        journal = stack.enter_context(Journal(folder))
        open_ = [one for one in asked if not _settled(journal.get(one.id), one, folder, retry_failed)]
        jobs = _jobs(open_)[:limit]
        work = Work(jobs, options, turns, stop)
        robots = Robots(fetcher, turns, options.longest_wait) if options.robots else None
        before = len(asked) - sum(len(job.ids) for job in jobs)
        fetched = _run(
            work, fetcher, robots, journal, folder, options, (len(asked), before), should_stop, stop
        )
        there, failures = 0, []
        for one in asked:
            line = journal.get(one.id)
            if line is not None and line.get("address") == one.address:
                there += "file" in line
                if "error" in line:
                    failures.append(line)
    left = len(asked) - there - len(failures)
    return Downloads(folder, len(asked), there, fetched, tuple(failures), left, dict(work.given_up))


def _settled(line: Mapping[str, Any] | None, one: Wanted, folder: Path, retry_failed: bool) -> bool:
    """Whether the journal says that there is nothing more to do for a picture."""
    if line is None or line.get("address") != one.address:
        return False
    if "error" in line:
        return not retry_failed
    file = folder / str(line["file"])
    return file.is_file() and file.stat().st_size == line["bytes"]


def _jobs(wanted: Iterable[Wanted]) -> list[Job]:
    by_address: dict[str, Job] = {}
    for one in wanted:
        by_address.setdefault(one.address, Job(one.address)).ids.append(one.id)
    return list(by_address.values())


def _run(
    work: Work,
    fetcher: Fetcher,
    robots: Robots | None,
    journal: Journal,
    folder: Path,
    options: DownloadOptions,
    so_far: tuple[int, int],
    should_stop: Callable[[], bool],
    stop: threading.Event,
) -> int:
    """Threads fetch and write pictures; this one writes the journal, says how far it is, and listens for a stop."""
    results: queue.Queue[list[dict[str, Any]] | BaseException | None] = queue.Queue()

    def worker() -> None:
        try:
            while (job := work.next()) is not None:
                try:
                    entries = _fetch(job, fetcher, robots, folder, options)
                except Trouble as trouble:
                    if not work.failed(job, trouble):
                        continue
                    about = {"kind": trouble.kind, "error": trouble.reason, "attempts": job.attempts}
                    entries = [{"id": one, "address": job.address, **about} for one in job.ids]
                else:
                    work.done(job)
                results.put(entries)
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody sees it
            results.put(error)
        finally:
            results.put(None)

    count = max(1, min(options.hosts, work.n_hosts) * options.connections)
    threads = [threading.Thread(target=worker, name=f"download-{i}", daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    fetched = failed = ended = 0
    total, done = so_far
    try:
        with task("downloading", total, "pictures", done) as bar:
            while ended < count:
                if should_stop():
                    stop.set()
                try:
                    result = results.get(timeout=0.2)
                except queue.Empty:
                    continue
                if isinstance(result, BaseException):
                    raise result
                ended += result is None
                for entry in result or ():
                    journal.add(entry)
                    fetched, failed = fetched + ("file" in entry), failed + ("error" in entry)
                    bar.advance(note=f"{failed:,} failed" if failed else "")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if should_stop():
        raise Interrupted(
            f"stopped: {fetched:,} pictures came, {failed:,} failed", "run the same command to go on"
        )
    return fetched


def _fetch(
    job: Job, fetcher: Fetcher, robots: Robots | None, folder: Path, options: DownloadOptions
) -> list[dict[str, Any]]:
    allowed = None if robots is None else robots.check
    fetched = fetcher.fetch(job.address, options.max_bytes, allowed)
    seen = looked_at(fetched, options)
    entries = []
    for one in job.ids:
        entry: dict[str, Any] = {
            "id": one,
            "address": job.address,
            **keep_picture(folder, one, fetched, seen),
        }
        if fetched.address != job.address:
            entry["came_from"] = fetched.address
        entries.append(entry)
    return entries
