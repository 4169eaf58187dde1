"""Downloading pictures: polite to hosts, safe to stop, the same command goes on."""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.commerce.downloads.fetching import (
    Fetched,
    Fetcher,
    Stopped,
    Trouble,
    Turns,
    host_of,
    proper_address,
)
from diptych.commerce.downloads.options import JOURNAL, DownloadOptions, Journal, Wanted, checked
from diptych.commerce.downloads.robots import Robots
from diptych.core.context import RESUME, stopping, task
from diptych.core.errors import ImageError, Interrupted
from diptych.core.files import check_replaceable, write_bytes
from diptych.core.locking import exclusive_folder
from diptych.core.table import Table
from diptych.data.images import decode_image
from diptych.data.products import picture_name

_DEAD_AFTER = 3
"""Pictures in a row that did not come because of their host, all attempts each; then the host is given up."""


@dataclass
class Job:
    """One address and all items whose picture it is; it is fetched once for all of them."""

    address: str
    ids: list[str] = field(default_factory=list)
    attempts: int = 0


class Work:
    """Jobs in the order given, per host; threads take them and bring them back."""

    def __init__(
        self, jobs: Iterable[Job], options: DownloadOptions, turns: Turns, stop: threading.Event
    ) -> None:
        self._options, self._turns, self._stop = options, turns, stop
        self._changed = threading.Condition()
        self._queues: dict[str, deque[Job]] = {}
        for job in jobs:
            self._queues.setdefault(_host(job), deque()).append(job)
        self._ticket = itertools.count()
        # A host has as many places here as it may have connections; a place is taken while its job runs.
        self._ready = [
            (0.0, next(self._ticket), host) for host in self._queues for _ in range(options.connections)
        ]
        self._running = 0
        self._dead: dict[str, int] = {}
        self.given_up: dict[str, str] = {}

    @property
    def n_hosts(self) -> int:
        """Return how many hosts there are."""
        return len(self._queues)

    def next(self) -> Job | None:
        """Return the job whose turn is first, waited for; None when there is none left, or when asked to stop."""
        with self._changed:
            while not self._stop.is_set():
                now = time.monotonic()
                if self._ready and self._ready[0][0] <= now:
                    host = heapq.heappop(self._ready)[2]
                    if host in self.given_up or not self._queues[host]:
                        continue
                    self._running += 1
                    return self._queues[host].popleft()
                if not self._ready and not self._running:
                    return None
                self._changed.wait(min(0.2, max(0.001, self._ready[0][0] - now)) if self._ready else 0.2)
        return None

    def failed(self, job: Job, trouble: Trouble) -> bool:
        """A job did not come: whether that is the end of it. If not, it is tried again when its host has had rest."""
        job.attempts += 1
        host = _host(job)
        wait = self._options.back_off * 2 ** (job.attempts - 1)
        if trouble.after is not None:
            wait = max(wait, trouble.after)
        if trouble.again and wait > self._options.longest_wait:
            self._give_up(host, f"asks to wait {wait:,.0f} s")
            self.back(job, put_back=True)
            return False
        if trouble.again and job.attempts < self._options.attempts:
            self._turns.pause(trouble.host or host, wait)
            self.back(job, put_back=True)
            return False
        self.back(job, came=not trouble.of_host)
        if self._dead.get(host, 0) >= _DEAD_AFTER:
            self._give_up(host, trouble.reason)
        return True

    def _give_up(self, host: str, reason: str) -> None:
        with self._changed:
            self.given_up[host] = reason
            self._changed.notify_all()

    def back(self, job: Job, *, came: bool | None = None, put_back: bool = False) -> None:
        """Take back a job that came, or did not because of its host, or is to be tried again."""
        host = _host(job)
        with self._changed:
            self._running -= 1
            if put_back:
                self._queues[host].appendleft(job)
            if came is not None:
                self._dead[host] = 0 if came else self._dead.get(host, 0) + 1
            heapq.heappush(self._ready, (self._turns.next_at(host), next(self._ticket), host))
            self._changed.notify_all()


def _host(job: Job) -> str:
    try:
        return host_of(proper_address(job.address))
    except Trouble:
        return ""  # it will fail at once, under nobody's name


_BEGINNINGS = (
    (b"\xff\xd8", "jpg"),
    (b"\x89PNG", "png"),
    (b"GIF8", "gif"),
    (b"RIFF", "webp"),
    (b"BM", "bmp"),
    (b"II", "tif"),
    (b"MM", "tif"),
    (b"P", "ppm"),
)
"""How files of the formats that are decoded begin, and their endings."""


def looked_at(fetched: Fetched, options: DownloadOptions) -> dict[str, Any]:
    """Decode what came: ``ending``, ``width``, ``height``."""
    try:
        picture = decode_image(fetched.content, "the picture", options.max_pixels)
    except ImageError as error:
        said = f" ({fetched.kind})" if fetched.kind else ""
        raise Trouble("no picture", f"{error.message}{said}") from None
    width, height = picture.size
    if min(width, height) < options.min_side:
        raise Trouble("placeholder", f"a picture of {width} × {height} pixels stands for one that is missing")
    ending = next(ending for beginning, ending in _BEGINNINGS if fetched.content.startswith(beginning))
    return {"ending": ending, "width": width, "height": height}


_SHOWN = 5  # ids per reason


@dataclass(frozen=True)
class Downloads:
    """What a download did."""

    folder: Path  # where the pictures and ``downloads.jsonl`` are
    wanted: int  # how many pictures were asked for
    there: int  # of them, those that are in the folder now
    fetched: int  # of those, the ones that this call brought
    # of them, those that did not come, as the journal has them: ``id``, ``address``, ``kind``, ``error``
    failures: tuple[Mapping[str, Any], ...]
    left: int  # those not tried yet: beyond the limit, or of hosts that were given up
    given_up: Mapping[str, str]  # host → why it was left for another time

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many failed for which kind of reason, most frequent first."""
        return dict(Counter(str(one["kind"]) for one in self.failures).most_common())

    def line(self) -> str:
        """Return how many came, failed and are left."""
        return (
            f"{self.there:,} of {self.wanted:,} images are in {self.folder}, {self.fetched:,} of them fetched now; "
            f"{len(self.failures):,} failed, {self.left:,} not tried yet"
        )

    def tables(self) -> list[Table]:
        """Return why images did not come, and the hosts that were given up."""
        rows = []
        for kind, count in self.reasons.items():
            some = [one for one in self.failures if one["kind"] == kind][:_SHOWN]
            ids = ", ".join(str(one["id"]) for one in some)
            rows.append((kind, f"{count:,}", str(some[0]["error"]), ids))
        hosts = sorted(self.given_up.items())
        failed = Table.of("failed", "", ("kind", "images", "the first one's reason", "ids"), rows)
        later = Table.of("hosts left for another time", "", ("host", "why"), hosts)
        return [*([failed] if rows else []), *([later] if hosts else [])]


def download_pictures(
    wanted: Iterable[Wanted],
    folder: Path | str,
    options: DownloadOptions,
    *,
    limit: int | None = None,
    retry_failed: bool = False,
) -> Downloads:
    """Fetch pictures into ``folder`` as ``NAME.ENDING``, where NAME is :func:`~diptych.data.products.picture_name`.

    What is there is not fetched again, and what failed is not tried again unless asked. Bytes are kept as they came,
    once they were decoded as a picture. Killed at any moment, the same call goes on; at most the pictures on their way
    are asked for again. Hosts are called directly: proxies of the environment are not used.
    """
    asked, folder = checked(wanted), Path(folder)
    stop = threading.Event()
    turns = Turns(options.rate, options.connections, stop)
    with ExitStack() as stack:
        fetcher = Fetcher(options, turns)
        stack.callback(fetcher.close)
        check_replaceable(folder, JOURNAL)  # before anything in it is touched
        stack.enter_context(exclusive_folder(folder))
        journal = stack.enter_context(Journal(folder))
        open_ = [one for one in asked if not _settled(journal.get(one.id), one, folder, retry_failed)]
        jobs = _jobs(open_)[:limit]
        work = Work(jobs, options, turns, stop)
        robots = Robots(fetcher, turns, options.longest_wait) if not options.ignore_robots else None
        before = len(asked) - sum(len(job.ids) for job in jobs)
        fetched = _run(work, fetcher, robots, journal, folder, options, (len(asked), before), stop)
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
    """Return whether the journal says that there is nothing more to do for a picture."""
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
                    work.back(job, came=True)
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
                if stopping():
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
    if stopping():
        raise Interrupted(f"stopped: {fetched:,} pictures came, {failed:,} failed", RESUME)
    return fetched


def _fetch(
    job: Job, fetcher: Fetcher, robots: Robots | None, folder: Path, options: DownloadOptions
) -> list[dict[str, Any]]:
    allowed = None if robots is None else robots.check
    fetched = fetcher.fetch(job.address, options.max_bytes, allowed)
    seen = looked_at(fetched, options)
    entries = []
    for one in job.ids:
        name = picture_name(one)
        file = f"{name}.{seen['ending']}"
        write_bytes(folder / file, fetched.content)  # as it came
        for ending in {ending for _, ending in _BEGINNINGS} - {seen["ending"]}:
            (folder / f"{name}.{ending}").unlink(missing_ok=True)  # of the same item with another ending
        entry: dict[str, Any] = {
            "id": one,
            "address": job.address,
            "file": file,
            "bytes": len(fetched.content),
        }
        entry |= {"width": seen["width"], "height": seen["height"]}
        if fetched.address != job.address:
            entry["came_from"] = fetched.address
        entries.append(entry)
    return entries
