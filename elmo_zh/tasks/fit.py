"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.run.files import file_digest, remove
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.run.resumable import claimed_output, open_parts, parts_of
from elmo_zh.tasks.data.datasets import DataFiles, Dataset, load_dataset
from elmo_zh.tasks.networks.settings import HeadSettings
from elmo_zh.tasks.prepared_task import FitJob, FitReport, PreparedTask
from elmo_zh.tasks.task_files import is_trained_task
from elmo_zh.version import __version__


def fit_task(
    job: FitJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None
) -> FitReport:
    """Train a task and write its folder; an interrupted call resumes.

    Args:
        job: What to train.
        embedder: The bundle.
        output: The folder, which appears when it is complete; `OUTPUT.parts` holds what is unfinished.
        force: Replace a trained task, and do not resume an unfinished one.
        reporter: Receives messages and progress.

    Raises:
        CorpusError: If the data cannot be read, or nothing can be learned from it.
        OptionError: If the settings do not go together or with the model.
        OutputError: If the output exists, or an unfinished one is of other data, another model or other settings.
    """
    reporter = reporter or SilentReporter()
    files = job.files.resolved(job.reading, reporter)
    read = [path for path in (files.data, files.dev, files.test) if path is not None]
    parts = parts_of(output)
    with claimed_output(output, [*read, embedder.bundle.path], is_trained_task, force=force):
        dataset = load_dataset(files, job.reading, reporter)
        job = replace(job, settings=with_inputs(job.settings, dataset, embedder, reporter))
        if job.training.bilm_learning_rate is not None and "elmo" not in job.settings.inputs:
            raise OptionError("--fine-tune trains the biLM, so ELMo has to be an input: add elmo to --inputs.")
        open_trainings(parts, manifest_of(job, files, embedder), force=force)
        task = PreparedTask.prepare(job, dataset, embedder, parts, reporter)
        trained = [task.train(seed, parts / f"seed-{seed}") for seed in task.seeds()]
        report = task.write(output, trained)
        remove(parts)
    return report


def with_inputs(settings: HeadSettings, dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter) -> HeadSettings:
    """Return the settings with inputs that the data and the model allow."""
    has_word2vec = BundleLayout(embedder.bundle.path).word2vec.is_file()
    inputs = settings.inputs
    if not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))
        if not has_word2vec:
            inputs = tuple(name for name in inputs if name != "word2vec")
            reporter.note(f"{embedder.bundle.path} has no word2vec vectors, so the input is {', '.join(inputs)} only.")
    elif "word2vec" in inputs and not has_word2vec:
        Word2Vec.load(embedder.bundle.path)  # raises the error that says what to do
    check_head(settings, inputs)
    return replace(settings, inputs=inputs)


def check_head(settings: HeadSettings, inputs: Sequence[str]) -> None:
    """Raise OptionError if a network has no place for ELMo where the settings put it."""
    if settings.head == "linear" and settings.encoder != "single":
        raise OptionError(f"--encoder {settings.encoder}: a linear head has no LSTMs. Leave it out.")
    if settings.head == "linear" and settings.elmo_at != "input":
        raise OptionError(f"--elmo-at {settings.elmo_at}: a linear head has no other place for ELMo than its input.")
    if "elmo" in inputs and settings.elmo_at == "output" and len(inputs) == 1:
        raise OptionError("--elmo-at output needs another input: --inputs word2vec,elmo")


def manifest_of(job: FitJob, files: DataFiles, embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return what a trained task depends on, for `manifest.json`."""
    digests = {
        part: file_digest(path)
        for part, path in (("data", files.data), ("dev", files.dev), ("test", files.test))
        if path is not None
    }
    return {
        "elmo_zh": __version__,
        "digests": digests,
        "seed": files.seed,
        "limit": files.limit,
        "reading": asdict(job.reading),
        "settings": asdict(job.settings),
        "training": asdict(job.training),
        "num_seeds": job.num_seeds,
        **embedder.identity(),
    }


def open_trainings(parts: Path, manifest: Mapping[str, Any], *, force: bool) -> None:
    """Create the folder of unfinished trainings, or keep those that are finished in it.

    Raises:
        OutputError: If it holds trainings of other data, another model or other settings, and `force` is not given.
    """
    other = "an unfinished training with other data, another model or other settings"
    open_parts(parts, manifest, other, lambda: len(list(parts.glob("seed-*"))), force=force)
