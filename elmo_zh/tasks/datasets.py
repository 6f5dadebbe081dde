"""The data of a task: all examples in one list, and the row numbers of the training, development and test examples."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.content import is_hidden, is_other_name, without_compression
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.corpus.readers.annotation_tools import refuse_other_formats
from elmo_zh.corpus.readers.columns import PART_WORDS, part_named
from elmo_zh.corpus.readers.examples import (
    OUTSIDE,
    Example,
    Labelled,
    UnlabelledError,
    count_labels,
    require_same_units,
)
from elmo_zh.errors import CorpusError
from elmo_zh.language import _, ngettext
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.text.script import HAN

HELD_OUT_FRACTION = 0.1
_WORDS = re.compile(r"[^\W_]+")
# If a larger fraction of the texts has no Han character, they are in another language or are numbers.
_WITHOUT_CHINESE = 0.95
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """The row numbers of the examples that train a model, decide when to stop, and give the final score.

    Each array is int64, in ascending order; `test` may be empty.
    """

    train: Numbers
    dev: Numbers
    test: Numbers

    def parts(self) -> dict[str, Numbers]:
        """Return the row numbers by part: train, dev and test."""
        return vars(self).copy()


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """The examples of a task, in the order of the files with training, development and test examples."""

    examples: Sequence[Example]
    split: Split
    scheme: str = ""  # in tagging, the scheme of the data; "" for tags that mark no spans
    by_words: bool = False  # in tagging, whether the units are words
    files: Mapping[str, Path]
    columns: tuple[str, ...] = ()  # the columns of the texts and the label in the training file, as names or numbers
    is_split: bool = False  # whether the examples came undivided in one file, and were split here

    def part(self, name: str) -> list[Example]:
        """Return the examples of train, dev or test."""
        return self.at(self.split.parts()[name])

    def gold(self, name: str) -> list[tuple[str, ...]]:
        """Return the true labels of the examples of train, dev or test."""
        return [example.labels for example in self.part(name)]

    def at(self, rows: Numbers) -> list[Example]:
        """Return the examples with these row numbers."""
        return [self.examples[row] for row in rows]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The distinct labels of the training examples, sorted."""
        return tuple(sorted({label for example in self.part("train") for label in example.labels}))

    def output_labels(self) -> tuple[str, ...]:
        """Return the labels that a network can predict: the training labels or, for spans, each type's BIOES tags."""
        if not self.scheme:
            return self.labels
        types = sorted({label[1:] for label in self.labels if label != OUTSIDE})
        return (OUTSIDE, *(letter + kind for kind in types for letter in "BIES"))

    def classes(self, labels: Sequence[str]) -> Numbers:
        """Return the number of each example's class among `labels`, -1 if it is not there, int64, shape (N,)."""
        numbers = {label: number for number, label in enumerate(labels)}
        return np.array([numbers.get(example.labels[0], -1) for example in self.examples], np.int64)


def describe_data(dataset: Dataset, files: DataFiles, reading: Reading) -> dict[str, Any]:
    """Return what the examples depend on, for the manifest of a job."""
    digests = {part: file_digest(path) for part, path in dataset.files.items()}
    return {"digests": digests, "seed": files.seed, "limit": files.limit, "reading": asdict(reading)}


def places(examples: Sequence[Example], seed: int, purpose: str) -> NDArray[np.float64]:
    """Map each example to a number from 0 to 1 that depends only on its text, the seed and the purpose."""

    def place(example: Example) -> int:
        digest = hashlib.sha256(f"{purpose} {seed}\0{example.key}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big")

    return np.array([place(example) for example in examples], np.float64) / 2**64


def choose_rows(examples: Sequence[Example], rows: Numbers, limit: int, seed: int) -> Numbers:
    """Return up to `limit` of the rows in ascending order; a larger limit only adds rows."""
    ranked = np.argsort(places([examples[row] for row in rows], seed, "limit"), kind="stable")
    return np.sort(rows[ranked[:limit]])


def fold_numbers(examples: Sequence[Example], num_folds: int, seed: int) -> Numbers:
    """Return the fold of each example, int64, shape (N,); copies of a text share one, even if fewer folds result."""
    texts = np.unique([example.key for example in examples], return_inverse=True)[1]
    count, numbers = min(num_folds, int(texts.max()) + 1), np.zeros(len(examples), np.int64)
    if count > 1:
        folds = GroupKFold(count, shuffle=True, random_state=seed).split(texts, groups=texts)
        for number, (_others, rows) in enumerate(folds):
            numbers[rows] = number
    return numbers


def split_into_folds(dataset: Dataset, num_folds: int, seed: int, limit: int | None = None) -> list[Split]:
    """Return one split per fold, with the fold as test set; copies of a text are in the same part.

    With a limit, each split has at most that many training examples.
    """
    fold_of = fold_numbers(dataset.examples, num_folds, seed)
    place = places(dataset.examples, seed, "dev")
    splits = []
    for fold in range(num_folds):
        others = np.flatnonzero(fold_of != fold)
        distinct = np.unique(place[others])
        if len(distinct) < 2 or fold > fold_of.max():
            raise CorpusError(
                _(
                    "{folds} folds need more than the {number} distinct examples in this file. Use more data, or lower"
                    " --folds."
                ).format(folds=num_folds, number=f"{len(np.unique(place)):,}")
            )
        is_dev = place[others] <= distinct[max(1, round(HELD_OUT_FRACTION * len(distinct))) - 1]
        train = others[~is_dev]
        if limit is not None:
            train = choose_rows(dataset.examples, train, limit, seed)
        splits.append(Split(train, others[is_dev], np.flatnonzero(fold_of == fold)))
    return splits


def find_files(files: DataFiles, reporter: Reporter) -> DataFiles:
    """If the data is a folder, find its files by name; raise CorpusError if a part has several or training has none."""
    folder = files.data
    if not folder.is_dir():
        return files
    names = {path: PurePosixPath(path.name) for path in sorted(folder.iterdir()) if path.is_file()}
    inside = [path for path, name in names.items() if not is_hidden(name) and not is_other_name(path.name)]
    for path in inside:
        if path.suffix == ".ann":
            refuse_other_formats(str(path), path.read_text("utf-8", "replace")[: 2**16])
    named = {"dev": files.dev, "test": files.test}
    train, dev, test = (named.get(part) or _part_of_folder(folder, inside, part) for part in PART_WORDS)
    if not (train or dev or test) and len(inside) == 1:
        [train] = inside
    if train is None:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())
        raise CorpusError(
            _(
                "{folder} has no file with the word train in its name (found: {names}). Specify the path of the"
                " labelled examples: a table, JSON lines or CoNLL."
            ).format(folder=folder, names=_listed(inside or folders) or _("none"))
        )
    if others := [path for path in inside if path not in (train, dev, test)]:
        reporter.note(_("Files in {folder} that are not used: {others}").format(folder=folder, others=_listed(others)))
    return replace(files, data=train, dev=dev, test=test, has_found_test=files.test is None)


def _listed(files: Sequence[Path]) -> str:
    return first_ten([path.name for path in files])


def _part_of_folder(folder: Path, files: Sequence[Path], part: str) -> Path | None:
    """Return the file whose name begins with, or else contains, a word for the part; None if no file does.

    Raises CorpusError if there are several.
    """
    words = {path: _WORDS.findall(without_compression(path.name)) for path in files}
    matching = [path for path in files if _part_named(words[path][:1]) == part]
    matching = matching or [path for path in files if _part_named(words[path]) == part]
    if len(matching) > 1:
        option = "DATA" if part == "train" else f"--{part}"
        raise CorpusError(
            _("{folder} has several files of {part} examples ({files}). Choose one of them: {option}").format(
                folder=folder, part=_(part), files=_listed(matching), option=option
            )
        )
    return matching[0] if matching else None


def _part_named(words: Sequence[str]) -> str:
    return next((part for part in map(part_named, words) if part), "")


def load_dataset(files: DataFiles, reading: Reading, reporter: Reporter, *, needs_test: bool = False) -> Dataset:
    """Find the files of a task's data; read, split and validate it.

    With `needs_test`, the development file becomes the test file if there is no test file.
    """
    files = find_files(files, reporter)
    read = _read_parts(files, reading, reporter)
    if needs_test and "dev" in read and "test" not in read:
        read["test"] = read.pop("dev")
        reporter.note(
            _(
                "No test examples were found, so {dev} is used for testing, and a tenth of {train} decides when"
                " training stops."
            ).format(dev=Path(read["test"].name).name, train=files.data.name)
        )
    train = read["train"]
    for labelled in read.values():
        require_same_units(labelled, train.scheme, train.name, by_words=train.by_words)
    examples = [example for labelled in read.values() for example in labelled.examples]
    dataset = Dataset(
        examples=examples,
        split=_split(read, files.seed, reporter),
        scheme=train.scheme,
        by_words=train.by_words,
        files={part: Path(labelled.name) for part, labelled in read.items()},
        columns=train.columns,
        is_split=read.keys() == {"train"} and not any(example.part for example in train.examples),
    )
    rows = dataset.split.train
    if files.limit is not None and files.limit < len(rows):
        reporter.note(_("Using at most {limit} of the training examples (--limit).").format(limit=f"{files.limit:,}"))
        rows = choose_rows(examples, rows, files.limit, files.seed)
        dataset = replace(dataset, split=replace(dataset.split, train=rows))
    _check(dataset, reading, reporter)
    return dataset


def _read_parts(files: DataFiles, reading: Reading, reporter: Reporter) -> dict[str, Labelled]:
    """Read each file, except a test file that was found in a folder and has no labels."""
    read: dict[str, Labelled] = {}
    for part, path in files.paths().items():
        try:
            read[part] = read_labelled(path, reading)
        except UnlabelledError:
            if not (part == "test" and files.has_found_test):
                raise
            reporter.note(_("{path} has no labels and is skipped. To label it, use: task predict").format(path=path))
            continue
        report_reading(read[part], reporter)
    return read


def report_reading(labelled: Labelled, reporter: Reporter) -> None:
    """Report how many examples a file has, and how they were read."""
    number = len(labelled.examples)
    reporter.note(
        ngettext(
            "Reading {name}: {number} example; {notes}", "Reading {name}: {number} examples; {notes}", number
        ).format(name=labelled.name, number=f"{number:,}", notes=_("; ").join(labelled.notes))
    )


def _split(read: Mapping[str, Labelled], seed: int, reporter: Reporter) -> Split:
    """Divide the rows by file, or by a column of the only file; set aside training examples for parts that are missing.

    Copies of a text are set aside together. A development file without a test file suffices.
    """
    examples = [example for labelled in read.values() for example in labelled.examples]
    part_of = np.repeat(list(read), [len(labelled.examples) for labelled in read.values()])
    by_column = np.array([example.part for example in examples])
    if read.keys() == {"train"} and "train" in by_column and (by_column != "train").any():
        part_of = by_column
    # Files of training and development examples suffice.
    missing = [part for part in ("dev", "test") if part not in part_of and not (part == "test" and "dev" in read)]
    place = places(examples, seed, "split")
    for number, part in enumerate(missing):
        aside = (place >= number * HELD_OUT_FRACTION) & (place < (number + 1) * HELD_OUT_FRACTION)
        part_of = np.where((part_of == "train") & aside, part, part_of)
    split = Split(*(np.flatnonzero(part_of == part) for part in PART_WORDS))
    if missing:
        train, dev, test = (f"{len(rows):,}" for rows in split.parts().values())
        message = _(
            "Some training examples were set aside at random (seed {seed}), leaving {train} train, {dev} dev and {test}"
            " test examples."
        )
        reporter.note(message.format(seed=seed, train=train, dev=dev, test=test))
    return split


def _check(dataset: Dataset, reading: Reading, reporter: Reporter) -> None:
    for part in ("train", "dev"):
        if not len(dataset.split.parts()[part]):
            raise CorpusError(
                _("There are no {part} examples. Use more data, or specify a file of {part} examples.").format(
                    part=_(part)
                )
            )
    texts = [text for example in dataset.part("train") for text in example.texts]
    if sum(HAN.search(text) is None for text in texts) > _WITHOUT_CHINESE * len(texts):
        reporter.warn(
            _(
                "Hardly any training text contains Chinese (the first text is {texts}), but ELMo was trained on"
                " Chinese. If the texts are in another column, name that column: --text-column NAME"
            ).format(texts=repr(texts[0][:40]))
        )
    if not reading.regression and len(dataset.labels) < 2:
        raise CorpusError(
            _(
                "The training examples have only one label, {label}, but at least two are needed. If you divided data"
                " that is sorted by label, shuffle it first. If you set --limit, raise it."
            ).format(label=repr(dataset.labels[0]))
        )
    labels_of: dict[str, set[tuple[str, ...]]] = {}
    for example in dataset.part("train"):
        labels_of.setdefault(example.key, set()).add(example.labels)
    for part in ("dev", "test"):
        examples = dataset.part(part)
        if not reading.regression:
            warn_of_new_labels(part, examples, dataset.labels, reporter, marks_spans=bool(dataset.scheme))
        if copies := sum(example.key in labels_of for example in examples):
            reporter.warn(
                _("{copies} of {parts} {part} texts also occur in training, so the scores are too optimistic.").format(
                    copies=f"{copies:,}", parts=f"{len(examples):,}", part=_(part)
                )
            )
    if contradictions := sum(len(labels) > 1 for labels in labels_of.values()):
        reporter.warn(
            _("Training texts that occur with different labels: {contradictions}.").format(
                contradictions=f"{contradictions:,}"
            )
        )


def warn_of_new_labels(
    part: str, examples: Iterable[Example], known: Sequence[str], reporter: Reporter, *, marks_spans: bool
) -> bool:
    """Warn of labels that training lacks; return whether the examples' labels are mostly new."""
    labels = count_labels((example.labels for example in examples), marks_spans=marks_spans)
    names = count_labels([known], marks_spans=marks_spans)
    new = Counter({label: count for label, count in labels.items() if label not in names})
    if new:
        reporter.warn(
            _("{number} of {total} {part} labels never occur in training and count as wrong: {labels}.").format(
                number=f"{new.total():,}",
                total=f"{labels.total():,}",
                part=_(part),
                labels=first_ten([label[:40] for label in sorted(new)]),
            )
        )
    return 2 * new.total() > labels.total()
