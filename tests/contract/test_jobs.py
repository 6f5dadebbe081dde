"""What every job promises: whatever stops it, running it again ends with the same bytes, and nothing is lost unasked.

A new job is tried by adding it to JOBS.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from contract.command_line import contents_alone
from drawn_bundles import SHAPES, WORDS, add_word2vec, write_model
from messages import Heard, message_of

from elmo_zh import ElmoEmbedder
from elmo_zh.config import Layers, TextConfig, VocabConfig
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.build_index import IndexJob
from elmo_zh.contexts.index_text import IndexSettings
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.contexts.score_texts import ScoreJob
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.dump import DumpJob, DumpSettings
from elmo_zh.engine import Engine, worker_processes
from elmo_zh.errors import FullDiskError, OutputError
from elmo_zh.id_store.build import EncodeJob
from elmo_zh.model.precision import FLOAT32
from elmo_zh.run import job as job_module
from elmo_zh.run.files import remove
from elmo_zh.run.job import Job, Work, run_job
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.segment_corpus import SegmentJob
from elmo_zh.tasks.compare import CompareJob
from elmo_zh.tasks.encode_texts import VectorCache
from elmo_zh.tasks.fit import TaskJob
from elmo_zh.vocabulary.selection import VocabularyJob
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

LINES = [" ".join((WORDS * 7)[number % 5 : number % 31 + 2]) for number in range(13)] + ["", "梨 今天"]
QUIET = SilentReporter()


load_embedder, load_scorer = cache(ElmoEmbedder.load), cache(LineScorer.load)


@dataclass(frozen=True)
class Given:
    """What jobs are made from."""

    bundle: Path
    text: Path

    @property
    def texts(self) -> list[InputText]:
        return [input_text(source, TextConfig(), segmented=True) for source in find_sources([str(self.text)]).sources]

    @property
    def embedder(self) -> ElmoEmbedder:
        return load_embedder(self.bundle, stateful=False)

    @property
    def files(self) -> list[Path]:
        """The text in files of three lines."""
        lines = self.text.read_text(encoding="utf-8").splitlines(keepends=True)
        paths = [self.text.with_name(f"{self.text.stem}-{start:02d}.txt") for start in range(0, len(lines), 3)]
        for number, path in enumerate(paths):
            if not path.exists():
                path.write_text("".join(lines[3 * number : 3 * number + 3]), encoding="utf-8")
        return paths


def score(given: Given, output: Path, **options: Any) -> Job[Any]:
    by_token = options.pop("by_token", False)
    scorer = load_scorer(given.bundle, segmented=True, by_token=by_token)
    return ScoreJob(scorer=scorer, texts=given.texts, output=output, part_lines=4, **options)


def dump(given: Given, output: Path, **options: Any) -> Job[Any]:
    settings = {"segmented": True, "layers": Layers("all"), "dtype": "float32"}
    output_format = options.pop("output_format", "hdf5")
    settings |= options
    [text] = given.texts
    embedder = load_embedder(given.bundle, stateful=options.get("stateful", False))
    return DumpJob(
        embedder=embedder,
        text=text,
        output=output,
        settings=DumpSettings(**settings),
        output_format=output_format,
        part_lines=4,
    )


def index(given: Given, output: Path) -> Job[Any]:
    options = IndexOptions(min_count=1)
    settings = IndexSettings(layers=(1, 2), segmented=True, options=options)
    return IndexJob(embedder=given.embedder, texts=given.texts, output=output, settings=settings, part_lines=4)


@dataclass(frozen=True)
class Vectors:
    """The vectors that the jobs of tasks keep in their work folder."""

    given: Given
    output: Path
    inputs = ()
    valuable = ("vectors",)

    def may_replace(self, path: Path) -> bool:
        return path.is_file()

    def made_from(self) -> Mapping[str, Any]:
        return {"model": self.given.embedder.identity(), "text": self.given.text.read_text(encoding="utf-8")}

    def make(self, path: Path, work: Work) -> None:
        sentences = [tuple(line.split()) for line in self.given.text.read_text(encoding="utf-8").splitlines()]
        vectors = VectorCache.on_disk(work.within("vectors"), self.given.embedder, sentences, most_sentences=4)
        path.write_bytes(vectors.vectors.tobytes())


def segment(given: Given, output: Path) -> Job[Any]:
    config = TextConfig(segmenter="character", shard_bytes=50)
    return SegmentJob(find_sources([str(given.text)]), output, config)


def count(given: Given, output: Path) -> Job[Any]:
    counts, characters = output.with_name("counts"), output.with_name("characters")
    return VocabularyJob(
        files=given.files, config=VocabConfig(), output=output, counts=counts, character_counts=characters
    )


def encode(given: Given, output: Path, num_slots: int | None = None) -> Job[Any]:
    vocabulary, characters = (given.text.with_name(name) for name in ("vocabulary", "characters"))
    Vocabulary((*SPECIALS, *WORDS[:3])).save(vocabulary)
    SpellingModel.build({"梨": 1}).save(characters)
    files = {"train": given.files[1:], "heldout": given.files[:1]}
    return EncodeJob(
        files=files, vocabulary=vocabulary, character_counts=characters, num_slots=num_slots, output=output
    )


def tagged(given: Given) -> DataFiles:
    path = given.text.with_suffix(".conll")
    lines = given.text.read_text(encoding="utf-8").splitlines() * 4
    blocks = ["".join(f"{word}\t{'A' if word == WORDS[0] else 'B'}\n" for word in line.split()) for line in lines]
    path.write_text("\n".join(filter(None, blocks)), encoding="utf-8")
    return DataFiles(data=path)


def labelled(given: Given) -> DataFiles:
    path = given.text.with_suffix(".tsv")
    lines = given.text.read_text(encoding="utf-8").splitlines() * 4
    rows = [f"{line.replace(' ', '')}\t{line[0]}\n" for line in lines if line]
    path.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    return DataFiles(data=path)


def fit(given: Given, kind: str) -> FitJob:
    return FitJob(
        files=tagged(given) if kind == "tag" else labelled(given),
        reading=Reading(kind=kind),
        settings=HeadSettings(kind=kind, inputs=(), hidden_dim=5),
        training=TrainSettings(epochs=2, batch_size=8),
        num_seeds=1 if kind == "tag" else 2,
    )


def task(given: Given, output: Path, kind: str) -> Job[Any]:
    return TaskJob.of(fit(given, kind), given.embedder, output, QUIET)


def compare(given: Given, output: Path) -> Job[Any]:
    return CompareJob.of(fit(given, "tag"), given.embedder, output, QUIET, shares=(1.0,), folds=1)


JOBS: dict[str, Callable[[Given, Path], Job[Any]]] = {
    "score": score,
    "score tokens": lambda given, output: score(given, output, by_token=True),
    "score kept": lambda given, output: score(given, output, keep_share=0.5),
    "vectors": Vectors,
    "embed": dump,
    "embed pooled": lambda given, output: dump(given, output, pool="mean"),
    "embed npy, stateful": lambda given, output: dump(
        given, output, output_format="npy", stateful=True, layers=Layers("top")
    ),
    "index": index,
    "task tag": lambda given, output: task(given, output, "tag"),
    "task classify": lambda given, output: task(given, output, "classify"),
    "task compare": compare,
    "segment": segment,
    "vocab": count,
    "encode": encode,
    "encode characters": lambda given, output: encode(given, output, num_slots=7),
}
Make = Callable[..., Job[Any]]


@pytest.fixture(autouse=True)
def _precision_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The networks of tasks train in the precision that is faster at that moment."""
    monkeypatch.setattr("elmo_zh.tasks.networks.choose_precision", lambda *_: FLOAT32)


@pytest.fixture(autouse=True)
def _without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds differ each time that a task is trained, and pictures take longer than training."""
    monkeypatch.setattr("elmo_zh.tasks.train.time", SimpleNamespace(perf_counter=lambda: 0.0))
    for name in ("curve_figure", "confusion_figure", "save_picture"):
        monkeypatch.setattr(f"elmo_zh.tasks.fit.{name}", lambda *_: None)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "drawn"
    text = TextConfig(segmenter="character")
    return add_word2vec(write_model(folder, SHAPES["token"], with_softmax=True, text=text))


@pytest.fixture
def given(bundle: Path, tmp_path: Path) -> Given:
    text = tmp_path / "given" / "text.txt"
    text.parent.mkdir()
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return Given(bundle, text)


@pytest.fixture(params=JOBS)
def make(request: pytest.FixtureRequest, given: Given, tmp_path: Path) -> Make:
    """Return the job with an output in a folder of this name."""

    def build(name: str, given: Given = given) -> Job[Any]:
        (tmp_path / name).mkdir(exist_ok=True)
        return JOBS[request.param](given, tmp_path / name / "out")

    return build


def run(job: Job[Any], *, force: bool = False, **options: Any) -> Mapping[str, bytes]:
    """Run a job; return all files beside its output."""
    run_job(job, force=force, **{"reporter": QUIET, **options})
    return contents_alone(job.output.parent)


@contextmanager
def stopped_after(num_parts: int) -> Iterator[list[Any]]:
    """Ctrl-C in the part after these; yields the parts that were computed."""
    compute, computed = job_module._compute, []

    def counted(task: Any) -> Any:
        if len(computed) == num_parts:
            raise KeyboardInterrupt
        result = compute(task)
        if len(computed) == num_parts:  # reached by parts within this part
            raise KeyboardInterrupt
        computed.append(task.result)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_module, "_compute", counted)
        yield computed


def stop(job: Job[Any], num_parts: int) -> None:
    with stopped_after(num_parts), pytest.raises(KeyboardInterrupt):
        run(job)


ENDLESS = 10**6


def test_stopped_between_any_two_parts(make: Make) -> None:
    with stopped_after(ENDLESS) as computed:
        whole = run(make("whole"))
    assert len(computed) > 3
    for num_parts in range(len(computed)):
        job = make(f"stopped {num_parts}")
        stop(job, num_parts)
        assert not job.output.exists()
        with stopped_after(ENDLESS) as again:
            assert run(job) == whole
        assert len(again) <= len(computed) - num_parts


def test_any_damaged_file_is_made_again(make: Make) -> None:
    with stopped_after(ENDLESS) as computed:
        whole = run(make("whole"))
    job = make("damaged")
    stop(job, len(computed) - 1)
    parts = job.output.with_name("out.parts")
    for path in sorted(path for path in parts.rglob("*") if path.is_file() and path.name != "manifest.json"):
        sound = contents_alone(parts)
        data = path.read_bytes()
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:] if data else b"\0")
        reporter = Heard()
        try:
            with stopped_after(0):
                assert run(job, reporter=reporter) == whole  # nothing needs the damaged file any more
            remove(job.output)
        except KeyboardInterrupt:
            if not any(str(parts) in warning for warning in reporter.warnings):  # another part came first
                assert run(job) == whole, path
                remove(job.output)
        for name, content in sound.items():
            (parts / name).parent.mkdir(exist_ok=True, parents=True)
            (parts / name).write_bytes(content)
    path.write_bytes(data[:-3])
    assert run(job, reporter=Heard()) == whole


@contextmanager
def failing_once(number: int, moment: int) -> Iterator[None]:
    """A disk that fails when something is forced to disk, or renamed, for the n-th time."""
    calls: list[object] = []

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == moment + 1:
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", failing(os.fsync))
        patch.setattr(Path, "replace", failing(Path.replace))
        yield


@pytest.mark.parametrize(("number", "first"), [(errno.EIO, 1), (errno.ENOSPC, 3)])
def test_a_disk_that_fails_once(make: Make, number: int, first: int, request: pytest.FixtureRequest) -> None:
    """At some of the moments; tests/faults tries every call of the system."""
    whole = run(make("whole"))
    trains = "task" in request.node.name
    for moment in range(first, ENDLESS, 29 if trains else 5):
        job = make(f"failed {moment}")
        told = ""
        with failing_once(number, moment):
            try:
                assert run(job) == whole
                break  # there are no more moments
            except (OSError, FullDiskError) as error:
                told = str(error)
        assert ("the disk is full" if number == errno.ENOSPC else os.strerror(number)) in told
        if job.output.exists():  # it has been renamed, but that may not be on disk
            assert contents_alone(job.output.parent).items() >= whole.items()
        else:
            assert run(job) == whole


def test_run_twice(make: Make) -> None:
    job = make("out")
    whole = run(job)
    told = message_of(OutputError, lambda: run(job))
    assert str(job.output) in told
    assert "--force" in told
    assert contents_alone(job.output.parent) == whole
    assert run(job, force=True) == whole


def test_something_else_and_force(make: Make, given: Given, tmp_path: Path) -> None:
    other_text = tmp_path / "given" / "other.txt"
    other_text.write_text("我们 吃\n" * 3 + "".join(f"{line}\n" for line in LINES[4:]), encoding="utf-8")
    other = replace(given, text=other_text)
    expected = run(make("other", other))
    with stopped_after(ENDLESS) as computed:
        run(make("whole"))
    stop(make("out"), len(computed) - 1)
    before = contents_alone(tmp_path / "out")
    if make("out").valuable:
        told = message_of(OutputError, lambda: run(make("out", other)))
        assert str(tmp_path / "out" / "out.parts") in told
        assert "--force" in told
        assert contents_alone(tmp_path / "out") == before
    assert run(make("out", other), force=bool(make("out").valuable)) == expected


@pytest.fixture(scope="module")
def processes() -> Iterator[Engine]:
    with worker_processes(2) as engine:
        yield engine


def test_processes_make_the_same_and_continue_what_another_engine_began(make: Make, processes: Engine) -> None:
    whole, job = run(make("whole")), make("begun")
    stop(job, 1)
    assert run(make("processes"), engine=processes) == whole
    assert run(job, engine=processes) == whole
