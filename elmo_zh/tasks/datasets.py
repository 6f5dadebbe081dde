"""The data of a task: training, development and test examples, split and validated."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.names import is_hidden, is_other_name, without_compression
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.corpus.readers.columns import PART_WORDS, part_named
from elmo_zh.corpus.readers.examples import OUTSIDE, Example, Labelled, describe_tags
from elmo_zh.corpus.readers.labelled_records import UnlabelledError
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.text.han import HAN

DEV_FRACTION = TEST_FRACTION = 0.1
_WORDS = re.compile(r"[^\W_]+")
_SHOWN_FILES = 5
_SHOWN_CLASSES = 10
_LEAST_EXAMPLES = 20
# If a larger fraction of the texts has no Han character, they are in another language or are numbers.
_WITHOUT_CHINESE = 0.95
_SORTED = "Add examples with the missing labels. If the data was sorted by label, shuffle it before dividing it."
_LIMITED = "Raise --limit, which chooses the training examples at random."


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The examples of a task, and the files they come from."""

    train: Sequence[Example]
    dev: Sequence[Example]  # the examples that decide when to stop
    test: Sequence[Example]  # the examples for the final score; may be empty
    scheme: str  # in tagging, the scheme of the data; "" for tags that mark no spans
    by_words: bool  # in tagging, whether the units are words
    files: Mapping[str, Path]
    columns: tuple[str, ...] = ()  # the columns of the texts and the label in the training file, as names or numbers
    is_split: bool = False  # whether the examples came undivided in one file, and were split here

    def parts(self) -> dict[str, Sequence[Example]]:
        """Return the examples by part: train, dev and test."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def labels(self) -> tuple[str, ...]:
        """Return the labels of the training examples in alphabetical order."""
        return tuple(sorted({label for example in self.train for label in example.labels}))


def describe_data(dataset: Dataset, files: DataFiles, reading: Reading) -> dict[str, Any]:
    """Return what the examples depend on, for the manifest of a job."""
    digests = {part: file_digest(path) for part, path in dataset.files.items()}
    return {"digests": digests, "seed": files.seed, "limit": files.limit, "reading": asdict(reading)}


def output_labels(dataset: Dataset) -> tuple[str, ...]:
    """Return the labels that a network can predict: the training labels or, for spans, each type's BIOES tags."""
    labels = dataset.labels()
    if not dataset.scheme:
        return labels
    types = sorted({label[1:] for label in labels if label != OUTSIDE})
    return (OUTSIDE, *(letter + kind for kind in types for letter in "BIES"))


def find_files(files: DataFiles, reporter: Reporter) -> DataFiles:
    """Find the data files in a folder; raise CorpusError unless exactly one contains training examples."""
    folder = files.data
    if not folder.is_dir():
        return files
    names = {path: PurePosixPath(path.name) for path in sorted(folder.iterdir()) if path.is_file()}
    inside = [path for path, name in names.items() if not is_hidden(name) and not is_other_name(path.name)]
    given = {"dev": files.dev, "test": files.test}
    train, dev, test = (given.get(part) or _part_of_folder(folder, inside, part) for part in PART_WORDS)
    if not (train or dev or test) and len(inside) == 1:
        [train] = inside
    if train is None:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())
        raise CorpusError(
            f"{folder} has no file with train in its name. It contains {_listed(inside or folders) or 'no data'}."
            " Give the path of the labelled examples: a table, JSON lines or CoNLL."
        )
    others = [path for path in inside if path not in (train, dev, test)]
    if others:
        reporter.note(f"Files in {folder} that are not used: {_listed(others)}")
    return replace(files, data=train, dev=dev, test=test, has_found_test=files.test is None)


def _listed(files: Sequence[Path]) -> str:
    shown = ", ".join(path.name for path in files[:_SHOWN_FILES])
    number = len(files) - _SHOWN_FILES
    return f"{shown} and {number:,} more" if number > 0 else shown


def _part_of_folder(folder: Path, files: Sequence[Path], part: str) -> Path | None:
    """Return the file whose name begins with a word for the part or, failing that, contains one."""
    words = {path: _WORDS.findall(without_compression(path.name)) for path in files}
    found = [path for path in files if _part_named(words[path][:1]) == part]
    found = found or [path for path in files if _part_named(words[path]) == part]
    if len(found) > 1:
        option = f"--{part}"
        advice = "Give one of them as DATA." if part == "train" else f"Give one of them: {option} FILE"
        raise CorpusError(f"{folder} has several files of {part} examples ({_listed(found)}). {advice}")
    return found[0] if found else None


def _part_named(words: Sequence[str]) -> str:
    return next((part for part in map(part_named, words) if part), "")


def load_dataset(files: DataFiles, reading: Reading, reporter: Reporter, *, needs_test: bool = False) -> Dataset:
    """Read, split and validate the data of a task from the files found by `find_files`.

    With `needs_test`, the development file becomes the test file if there is no other.
    """
    read = _read_parts(files, reading, reporter)
    if needs_test and "dev" in read and "test" not in read:
        read["test"] = read.pop("dev")
        dev, train = Path(read["test"].name).name, files.data.name
        reporter.note(
            f"No test examples were found, so {dev} is used for testing, and a tenth of {train} decides when training"
            " stops."
        )
    _require_alike(read)
    parts = _divide({part: list(labelled.examples) for part, labelled in read.items()}, files.seed, reporter)
    dataset = whole = Dataset(
        train=parts["train"],
        dev=parts["dev"],
        test=parts.get("test", []),
        scheme=read["train"].scheme,
        by_words=read["train"].by_words,
        files={part: Path(labelled.name) for part, labelled in read.items()},
        columns=read["train"].columns,
        is_split=read.keys() == {"train"} and not any(example.part for example in read["train"].examples),
    )
    if files.limit is not None and files.limit < len(whole.train):
        reporter.note(f"Using {files.limit:,} of {len(whole.train):,} training examples (--limit).")
        dataset = replace(whole, train=choose_examples(whole.train, files.limit, files.seed))
    _check(dataset, reading, reporter, _SORTED if dataset.labels() == whole.labels() else _LIMITED)
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
            reporter.note(f"{path} has no labels and is skipped. To label it, use: task predict")
            continue
        notes = "; ".join(read[part].notes)
        reporter.note(f"Reading {read[part].name}: {counted(len(read[part].examples), 'example')}; {notes}")
    return read


def _require_alike(read: dict[str, Labelled]) -> None:
    train = read["train"]
    for labelled in read.values():
        if bool(labelled.scheme) != bool(train.scheme) or labelled.by_words != train.by_words:
            raise CorpusError(
                f"{labelled.name} has {describe_tags(labelled.scheme, by_words=labelled.by_words)}, but {train.name}"
                f" has {describe_tags(train.scheme, by_words=train.by_words)}. Give files that use the same kind of"
                " tag."
            )


def _divide(parts: dict[str, list[Example]], seed: int, reporter: Reporter) -> dict[str, list[Example]]:
    """Divide the examples by file, or by a column of the only file; then split off any missing parts."""
    if "dev" in parts:
        return parts
    if "test" in parts:
        return _split(parts, {"dev": DEV_FRACTION}, seed, reporter)
    by_column = {part: [example for example in parts["train"] if example.part == part] for part in PART_WORDS}
    named = {part: examples for part, examples in by_column.items() if examples}
    if len(named) > 1 and "train" in named:
        parts = named
        _report_split("by the column that names the parts", parts, reporter)
    fractions = {"dev": DEV_FRACTION, "test": TEST_FRACTION}
    return _split(parts, {part: share for part, share in fractions.items() if part not in parts}, seed, reporter)


def _split(
    parts: dict[str, list[Example]], fractions: dict[str, float], seed: int, reporter: Reporter
) -> dict[str, list[Example]]:
    """Split off fractions of the training examples by text, so that all copies of a text stay together."""
    if not fractions:
        return parts
    found: dict[str, list[Example]] = {part: [] for part in ("train", *fractions)}
    for example in parts["train"]:
        place, chosen = _place(example, seed, "split"), "train"
        for part, fraction in fractions.items():
            if 0 <= place < fraction:
                chosen = part
            place -= fraction
        found[chosen].append(example)
    parts = {**parts, **found}
    _report_split(f"at random with seed {seed}", parts, reporter)
    return parts


def _report_split(how: str, parts: Mapping[str, Sequence[Example]], reporter: Reporter) -> None:
    train, dev, test = (len(parts.get(part, ())) for part in PART_WORDS)
    reporter.note(f"Split {how}: {train:,} train, {dev:,} dev and {test:,} test examples.")


def _place(example: Example, seed: int, purpose: str) -> float:
    """Return a number from 0 to 1 that depends only on the text, the seed and the purpose."""
    digest = hashlib.sha256(f"{purpose} {seed}\0{example.key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def choose_examples(examples: Sequence[Example], limit: int, seed: int) -> list[Example]:
    """Return `limit` of the examples in their original order; a larger limit only adds examples."""
    ranked = sorted(range(len(examples)), key=lambda index: (_place(examples[index], seed, "limit"), index))
    return [examples[index] for index in sorted(ranked[:limit])]


def fold_numbers(examples: Sequence[Example], num_folds: int, seed: int) -> NDArray[np.int64]:
    """Return each example's fold, int64, shape (N,), with equal numbers of distinct texts; copies share a fold."""
    places = [_place(example, seed, "inner fold") for example in examples]
    ranks = {place: rank for rank, place in enumerate(sorted(set(places)))}
    return np.array([num_folds * ranks[place] // len(ranks) for place in places], np.int64)


def folds_of(dataset: Dataset, num_folds: int, seed: int) -> list[Dataset]:
    """Return one dataset per fold, which is its test set; copies of a text are in the same fold."""
    examples = [*chain.from_iterable(dataset.parts().values())]
    fold_of = [int(num_folds * _place(example, seed, "fold")) for example in examples]
    found = []
    for fold in range(num_folds):
        others = [example for example, own in zip(examples, fold_of, strict=True) if own != fold]
        test = [example for example, own in zip(examples, fold_of, strict=True) if own == fold]
        places = sorted({_place(example, seed, "dev") for example in others})
        if len(places) < 2 or not test:
            number = counted(len(examples), "example")
            raise CorpusError(f"{num_folds} folds need more than {number}. Give more data, or lower --folds.")
        last = places[max(1, round(DEV_FRACTION * len(places))) - 1]
        dev = [example for example in others if _place(example, seed, "dev") <= last]
        train = [example for example in others if _place(example, seed, "dev") > last]
        found.append(replace(dataset, train=train, dev=dev, test=test))
    return found


def _check(dataset: Dataset, reading: Reading, reporter: Reporter, advice_on_labels: str) -> None:
    for part in ("train", "dev"):
        if not dataset.parts()[part]:
            advice = "Give more data, or a file of dev examples: --dev FILE" if part == "dev" else "Give more data."
            raise CorpusError(f"There are no {part} examples. {advice}")
    texts = [text for example in dataset.train for text in example.texts]
    if sum(HAN.search(text) is None for text in texts) > _WITHOUT_CHINESE * len(texts):
        reporter.warn(
            f"Hardly any training text contains Chinese (the first text is {texts[0][:40]!r}), but ELMo was trained on"
            " Chinese. If the texts are in another column, name that column: --text-column NAME"
        )
    if not reading.regression:
        classes = dataset.labels()
        if len(classes) < 2:
            raise CorpusError(
                f"The data ({counted(len(dataset.train), 'training example')}) has only one label, {classes[0]!r}, but"
                f" at least two are needed. {advice_on_labels}"
            )
        for part in ("dev", "test"):
            _warn_of_new_labels(dataset, part, set(classes), reporter, advice_on_labels)
    _report_copies(dataset, reporter)


def has_ids_as_labels(examples: Sequence[Example]) -> bool:
    """Return whether most examples have a label that no other example has, as ids do."""
    counts = Counter(example.labels[0] for example in examples if example.units is None)
    return counts.total() >= _LEAST_EXAMPLES and 2 * list(counts.values()).count(1) > counts.total()


def _warn_of_new_labels(dataset: Dataset, part: str, known: set[str], reporter: Reporter, advice: str) -> None:
    new = Counter(label for example in dataset.parts()[part] for label in example.labels if label not in known)
    if new:
        shown = ", ".join(label[:40] for label in sorted(new)[:_SHOWN_CLASSES])
        scheme = "BIO tags are read as BIOES, where S- marks a span of one unit." if dataset.scheme == "BIO" else ""
        num_labels = sum(len(each.labels) for each in dataset.parts()[part])
        are_most = 2 * new.total() > max(num_labels, _LEAST_EXAMPLES)
        if has_ids_as_labels(dataset.train):
            advice = "Most labels occur only once, as ids do. Name another column: --label-column NAME"
        elif not (are_most and (part in dataset.files or advice == _LIMITED)):
            advice = scheme
        labels = counted(new.total(), f"{part} label")
        unseen = f"Labels that never occur in training count as wrong: {labels} ({shown})."
        reporter.warn(f"{unseen} {advice}".rstrip())


def _report_copies(dataset: Dataset, reporter: Reporter) -> None:
    of_train: dict[str, set[tuple[str, ...]]] = {}
    for example in dataset.train:
        of_train.setdefault(example.key, set()).add(example.labels)
    for part in ("dev", "test"):
        copies = sum(example.key in of_train for example in dataset.parts()[part])
        if copies:
            reporter.warn(
                f"{copies:,} of {len(dataset.parts()[part]):,} {part} texts also occur in training, so the"
                " scores are too optimistic."
            )
    contradictions = sum(len(labels) > 1 for labels in of_train.values())
    if contradictions:
        reporter.warn(f"Training texts that occur with different labels: {contradictions:,}.")
