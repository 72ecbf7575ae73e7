"""Rows on a Spark cluster: its workers read Parquet files, each some row groups, and only sums come back.

The rows of a Spark frame are written to Parquet files once, by Spark itself: so they never cross to Python row by row, are the
same in every pass, and are read like any other files.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Self

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import pa
from suffice.engines.encoding.sources import Options, Source
from suffice.engines.engine import ROWS, Engine, Sum, T, View
from suffice.engines.partitions import workers
from suffice.engines.partitions.partitions import Partitions, PartitionWork
from suffice.engines.partitions.workers import HeldBlocks, Piece
from suffice.engines.reading.files import Delimited, Parquet
from suffice.engines.scan import Backend
from suffice.engines.views.views import Viewed
from suffice.errors import DataError, note, whole

MOST = 64 * 2**20
"""Bytes of partial sums that the driver takes at once; more are added up by the workers, in a tree."""

FEW = 16
"""Partial sums that are taken without looking first how large one is."""

WATCH = 0.2
"""Seconds after which an interrupt is noticed that wakes nobody."""


@dataclass(frozen=True)
class Spark(Backend):
    """Where rows are worked on: by the workers of a Spark session, `scan(paths, engine=Spark(session))`.

    `scratch` is a directory that the driver and all workers reach under the same path: the rows of frames are written there, and
    what is kept between passes. Without one it is a temporary directory, which is enough where all run on one machine; on
    several, frames are refused, and each worker keeps on its own disk what it has made of files.
    `partitions` is the number of tasks of a pass: by default twice the number of cores that Spark has.

    >>> data = scan("visits/*.parquet", engine=Spark(SparkSession.builder.getOrCreate()))  # doctest: +SKIP
    """

    word = "spark"
    after_colon = ("master", str)
    maps_frames = True

    session: Any
    scratch: str | os.PathLike[str] | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        if self.partitions is not None:
            whole(self.partitions, "the number of partitions", 1)
        self.context  # noqa: B018 - a session that was stopped is refused

    @classmethod
    def of_word(cls, text: str, given: dict[str, Any]) -> Self:
        """`spark`, or `spark:MASTER`: in a session of its own."""
        return cls(start_session(text.partition(":")[2] or "local[*]"), **given)

    @classmethod
    def takes(cls, x: Any) -> bool:
        return type(x).__module__.startswith("pyspark.sql") and type(x).__name__ == "DataFrame"

    @classmethod
    def around(cls, x: Any) -> Spark:
        return cls(x.sparkSession)

    def map_frame(self, x: Any, function: Callable[[Any], Any]) -> Any:
        """A frame of what a function makes of tables of rows; it is called once here, with no rows, and by workers later."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        empty = function(to_arrow_schema(x.schema).empty_table())
        return x.mapInArrow(InBatches(function), from_arrow_schema(empty.schema))

    @property
    def context(self) -> Any:
        """What runs jobs."""
        context = getattr(self.session, "sparkContext", None)
        if context is None or not hasattr(context, "parallelize"):
            raise DataError(f"Spark is given a session, Spark(SparkSession.builder.getOrCreate()), not {self.session!r}")
        if context._jsc is None:
            raise DataError("the Spark session was stopped: start another, SparkSession.builder.getOrCreate()")
        return context

    @property
    def n_tasks(self) -> int:
        """The tasks of a pass over enough rows."""
        return self.partitions or 2 * int(self.context.defaultParallelism)

    def of_files(self, source: Source, options: Options) -> SparkRows:
        """The rows of Parquet or text files, under paths that the workers reach."""
        if isinstance(source, Parquet):
            pieces: tuple[Piece, ...] = workers.row_groups(source, lambda _, path: str(path))
            return SparkRows(self, pieces, source.names, replace(options, loose=True))
        if isinstance(source, Delimited):
            for message in source.notes:
                note(message)
            return SparkRows(self, workers.text_files(source), source.names, replace(options, decimal=source.decimal))
        raise DataError("workers of Spark read Parquet and text files; of other rows, give a frame of Spark")

    def of_frame(self, frame: Any, options: Options) -> SparkRows:
        """The rows of a frame, which are written to files first."""
        if frame.isStreaming:
            raise DataError("a streaming frame never ends: give the rows of one batch, as foreachBatch hands them over")
        folder = self.folder()
        with workers.plain_errors("the rows of the frame cannot be written"):
            self.interruptible(lambda: frame.write.mode("error").parquet(f"file:{folder}"))
        source = Parquet(sorted(folder.glob("*.parquet")))
        pieces = workers.row_groups(source, lambda i, _: f"partition {i + 1}")
        rows = SparkRows(self, pieces, source.names, replace(options, loose=True))
        weakref.finalize(rows.pieces[0] if rows.pieces else rows, shutil.rmtree, folder, ignore_errors=True)
        return rows

    @property
    def has_scratch(self) -> bool:
        """Whether there is a place for files that all workers reach."""
        return self.scratch is not None or str(self.context.master).startswith("local")

    def folder(self) -> Path:
        """The path of a new directory in the scratch directory."""
        if not self.has_scratch:
            raise DataError("rows are kept in files that all workers reach: say where, engine=Spark(session, scratch=DIR)")
        place = Path(tempfile.gettempdir() if self.scratch is None else self.scratch).expanduser().absolute()
        if not place.is_dir():
            raise DataError(f"{place}: there is no such directory for what is kept of the rows")
        return place / f"suffice-{uuid.uuid4().hex}"

    def remove(self, folder: Path) -> None:
        """Remove what is kept of rows, from the own disks of the workers if it is there: by tasks that reach those that have
        nothing else to do, and what they leave Spark removes when the session ends."""
        if folder.is_absolute():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            Thread(target=self._remove_there, args=(folder,), daemon=True).start()

    def _remove_there(self, folder: Path) -> None:
        with suppress(Exception):  # a session that was stopped
            self.context.parallelize(range(self.n_tasks), self.n_tasks).foreach(lambda _: workers.remove_here(folder))

    def run(self, tasks: Sequence[Any], work: Callable[[Any], T]) -> list[T]:
        """What some work gives for each task."""
        with workers.plain_errors("the work on a partition failed"):
            return [workers.unwrap(answer) for answer in self.interruptible(lambda: self._answers(tasks, work).collect())]

    def sum(self, tasks: Sequence[Any], work: Callable[[Any], Sum[T]]) -> Sum[T]:
        """The sum of what some work gives, added up by the workers where it is large."""
        first = self.run(tasks[:1], work) if len(tasks) > FEW else []
        left = tasks[len(first) :]
        if first and len(left) * len(pickle.dumps(first[0])) > MOST:
            with workers.plain_errors("the work on a partition failed"):
                added = self.interruptible(lambda: self._answers(left, work).treeReduce(workers.add_answers, depth=2))
                first.append(workers.unwrap(added))
        else:
            first += self.run(left, work)
        total: Sum[T] = Sum()
        for part in first:
            total += part
        return total

    def _answers(self, tasks: Sequence[Any], work: Callable[[Any], Any]) -> Any:
        from pyspark import cloudpickle

        # what was written at a prompt travels, too
        job = workers.Job(cloudpickle.dumps(work), workers.package_version())
        return self.context.parallelize(tasks, max(1, len(tasks))).map(job)

    def interruptible(self, call: Callable[[], T]) -> T:
        """What a call gives that has Spark work: it is made in another thread, for an interrupt of one that waits for the JVM
        would leave their connection in the middle of an answer. Where this one is interrupted, Spark ends that work, and only
        that."""
        from pyspark.util import inheritable_thread_target

        context, tag = self.context, f"suffice-{uuid.uuid4().hex}"

        def call_with_tag() -> T:
            context.addJobTag(tag)
            return call()

        with ThreadPoolExecutor(1) as thread:
            result: Future[T] = thread.submit(inheritable_thread_target(self.session)(call_with_tag))
            try:
                while not result.done():
                    wait([result], WATCH)
            except KeyboardInterrupt:
                while not result.done():  # it may not have begun when it was first cancelled
                    context.cancelJobsWithTag(tag)
                    wait([result], WATCH)
                raise
        return result.result()


JAVA = "Spark needs Java 17 or newer{}: apt-get install openjdk-17-jre-headless, or the like; JAVA_HOME says where it is"


def check_java() -> None:
    """Refuse to start Spark where there is no Java, or one that is too old, before Spark says so in fifty lines."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java" if home is None else os.path.join(home, "bin", "java"))
    if java is None:
        raise DataError(JAVA.format(", and there is none" + ("" if home is None else f" in {home}, which JAVA_HOME names")))
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode or (found and int(found[1]) < 17):
        raise DataError(JAVA.format(f", and {java} is Java {found[1]}" if found else f", and {java} does not run"))


def start_session(master: str) -> Any:
    """A session of Spark for the command line, whose workers run the Python that this is."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise DataError("Spark needs the package pyspark: pip install 'suffice[spark]'") from None
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("suffice")
    for name, value in OWN_SESSION.items():
        builder = builder.config(name, value)
    if master.startswith("local"):
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    with workers.plain_errors(f"Spark does not start at {master!r}"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


OWN_SESSION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings of a session that the command line starts; with sockets of files, tasks take less by the clock."""


@dataclass(frozen=True)
class SparkWork:
    """Some work on the tables that the pieces of a task have, or its step on blocks of them that are kept."""

    work: PartitionWork
    blocks: HeldBlocks | None

    @one_blas_thread
    def __call__(self, task: SparkTask) -> Any:
        if self.blocks is None:
            return self.work(workers.tables(task.pieces, self.work.reader.columns))
        return self.work.step(self.blocks.of(task.number, task.pieces, self.work.reader.names))


class SparkTask(NamedTuple):
    """What one task of a pass works on."""

    number: int
    pieces: tuple[Piece, ...]


class SparkRows(Partitions):
    """Rows of Parquet files, worked on by Spark. Some columns workers may keep encoded (`blocks`): what else is asked for is read
    from the files."""

    def __init__(
        self, spark: Spark, pieces: tuple[Piece, ...], names: Sequence[str], options: Options, blocks: HeldBlocks | None = None
    ) -> None:
        super().__init__(names, options)
        self.spark, self.pieces, self.columns, self.blocks = spark, pieces, tuple(names), blocks
        self.tasks = [SparkTask(i, part) for i, part in enumerate(workers.deal_out(pieces, spark.n_tasks))]
        self.sums_at_once = min(len(self.tasks), FEW)

    def again(self, options: Options) -> SparkRows:
        return SparkRows(self.spark, self.pieces, self.columns, options)

    def run(self, work: PartitionWork) -> Iterator[Any]:
        return iter(self.spark.run(self.tasks, self.reading(work)))

    def sum(self, work: PartitionWork) -> Sum[Any]:
        return self.spark.sum(self.tasks, self.reading(work))

    def reading(self, work: PartitionWork) -> SparkWork:
        """Some work, on what workers have of the rows: blocks that are kept, if columns are read as those that are."""
        asked, kept = work.reader, self.blocks
        if kept is None or asked.keep or not set(asked.names) <= set(kept.reader.names):
            return SparkWork(work, None)
        here, there = asked.options.declared, kept.reader.options.declared
        return SparkWork(work, kept if all(here.get(name) == there[name] for name in asked.names) else None)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        held = self
        if self.blocks is None or not set(names) <= set(self.blocks.reader.names):
            folder = self.spark.folder() if self.spark.has_scratch else Path(f"suffice-{uuid.uuid4().hex}")
            blocks = HeldBlocks(folder, self.reader(tuple(names)))
            held = SparkRows(self.spark, self.pieces, self.columns, self.options, blocks)
            held.seen, held.n_rows, held.weight, held.whole_weights = self.seen, self.n_rows, self.weight, self.whole_weights
            weakref.finalize(held, self.spark.remove, folder).atexit = folder.is_absolute()
        return held if view is None else Viewed(held, view)

    def place(self, number: int, row: int) -> str:
        piece = max((p for p in self.pieces if p.number <= number), key=lambda p: p.number)
        return piece.place(piece.first + (number - piece.number) * ROWS + row)


@dataclass(frozen=True)
class InBatches:
    """What a function makes of each table of rows, as Spark hands them over and takes them."""

    function: Callable[[Any], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from self.function(pa.Table.from_batches([batch])).to_batches()
