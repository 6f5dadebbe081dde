"""Read a file of labelled examples of any kind, or the unlabelled texts of one."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.names import suffix_of
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.sources import Source, find_sources
from elmo_zh.corpus.tally import PassedOver
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted
from elmo_zh.tasks.data.conll import read_conll
from elmo_zh.tasks.data.examples import Example, Labelled, UnlabelledError
from elmo_zh.tasks.data.json_objects import starts_as_objects
from elmo_zh.tasks.data.records import Record, read_objects, read_table
from elmo_zh.tasks.data.schemes import OUTSIDE, detect_scheme, marks_span, spans_of, tags_of
from elmo_zh.tasks.data.spans import read_spans
from elmo_zh.tasks.data.token_lists import has_token_lists, is_table_of_lists, read_table_of_lists, read_token_lists

FORMATS = ("auto", "csv", "tsv", "jsonl", "conll")
_FORMAT_OF_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".conll": "conll",
    ".conllu": "conll", ".bio": "conll", ".bmes": "conll", ".bioes": "conll",
}  # fmt: skip
_HEAD = 2**16
# The label of examples on which annotators did not agree, in data of inference.
_NO_LABEL = "-"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The settings for reading files of labelled data.

    Attributes:
        kind: classify, tag or pairs.
        regression: Labels are numbers.
        format: One of `FORMATS`.
        encoding: Encoding of the files, or auto.
        text_columns: Name of the text's column or field, or its number from 1; "" if it has to be found; two for pairs.
        label_column: The same for the label.
        skips_unlabelled: Classes and pairs: rows with an empty label are left out instead of refused.
    """

    kind: str
    regression: bool = False
    format: str = "auto"
    encoding: str = "auto"
    text_columns: tuple[str, ...] = ("",)
    label_column: str = ""
    skips_unlabelled: bool = False

    @property
    def num_texts(self) -> int:
        """Number of texts of an example."""
        return 2 if self.kind == "pairs" else 1

    def columns(self) -> tuple[str, ...]:
        """Return the wanted columns: of the texts, then of the label."""
        texts = (*self.text_columns, "", "")[: self.num_texts]
        return (*texts, self.label_column)


def read_labelled(path: Path, reading: Reading) -> Labelled:
    """Read all examples of a file, compressed or in an archive, in any encoding that `segment` reads.

    Raises:
        CorpusError: If the file does not exist or cannot be read, or a label is missing or wrong.
    """
    found: list[Labelled] = []
    for text in _decoded(path, reading):
        kind = _format_of(text, reading)
        labelled = _read_tags(text, kind, reading) if reading.kind == "tag" else _read_records(text, kind, reading)
        if text.encoding.name != "utf-8":
            labelled = replace(labelled, notes=(f"encoding {text.encoding.name.upper()}", *labelled.notes))
        found.append(labelled)
    if not found:
        raise CorpusError(f"{path}: it holds no file of labelled examples.")
    return _joined(str(path), found)


def _decoded(path: Path, reading: Reading) -> Iterator[DecodedText]:
    if path.is_dir():
        raise CorpusError(f"{path} is a folder, expected a file of labelled examples.")
    for source in find_sources([str(path)]).sources:
        yield from decoded_files(source, reading.encoding, PassedOver())


def _format_of(text: DecodedText, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    kind = _FORMAT_OF_SUFFIX.get(suffix_of(text.content.file_name))
    if kind is None or (kind == "tsv" and reading.kind == "tag"):
        head = text.head(_HEAD)
        if starts_as_objects(head):
            return "jsonl"
        if reading.kind == "tag":
            return "conll"
        return "tsv" if "\t" in head.partition("\n")[0] else "csv"
    return kind


def _read_tags(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    if kind == "csv":
        raise CorpusError(
            f"{text.name}: tags are read from CoNLL or JSON lines, not from CSV. Write a token, a tab and its tag on a"
            " line, and a blank line after each sentence; or name its format: --input-format conll"
        )
    text_column = reading.text_columns[0]
    if kind == "jsonl" and not has_token_lists(text, text_column, reading.label_column):
        examples, notes = read_spans(text, text_column, reading.label_column)
        scheme, by_words = "BIOES", False
    else:
        if kind == "jsonl":
            examples, notes, by_words = read_token_lists(text, text_column, reading.label_column)
        elif is_table_of_lists(text):
            kind = "tsv"
            examples, notes, by_words = read_table_of_lists(text)
        else:
            examples, notes, by_words = read_conll(text, text_column, reading.label_column)
        scheme = detect_scheme(chain.from_iterable(example.labels for example in examples), text.name)
        if scheme:
            examples, num_wrong = _in_bioes(examples)
            if num_wrong:
                wrong = counted(num_wrong, "tag")
                notes.append(f"{wrong} without a span to continue, read as the start of one, as by conlleval")
    units = "words" if by_words else "characters"
    notes.insert(0, f"{kind}, {units}, {f'spans in {scheme}' if scheme else 'a tag for each'}")
    return Labelled(name=text.name, examples=examples, scheme=scheme, by_words=by_words, notes=tuple(notes))


def _in_bioes(examples: Sequence[Example]) -> tuple[list[Example], int]:
    converted, num_wrong = [], 0
    for example in examples:
        spans, wrong = spans_of(example.labels)
        num_wrong += wrong
        converted.append(replace(example, labels=tuple(tags_of(spans, len(example.labels)))))
    return converted, num_wrong


def _read_records(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    if kind == "conll":
        raise _conll_error(text.name)
    found, note = _records(text, kind, reading, with_label=True)
    records = list(found)
    if not records:
        raise CorpusError(f"{text.name}: it has no rows below the names of the columns.")
    labelled = [record for record in records if record.cells[-1].strip()]
    if not labelled and (len(records) > 1 or reading.skips_unlabelled):
        raise UnlabelledError(f"{text.name}: all labels are empty. Give examples with labels.")
    what = "record" if kind == "jsonl" else "row"
    notes = [f"{kind}, {note}"]
    if len(labelled) < len(records):
        if not reading.skips_unlabelled:
            raise CorpusError(f"{text.name}: {_explain_unlabelled(what, records)}")
        notes.append(f"{len(records) - len(labelled):,} left out: the label is empty")
    labels = {record.cells[-1].strip() for record in labelled}
    if reading.format == "auto" and OUTSIDE in labels and any(map(marks_span, labels)):
        raise _conll_error(text.name)
    examples = [_example(text.name, what, record, reading) for record in labelled]
    agreed = examples if reading.regression else _with_agreed_label(examples)
    if len(agreed) < len(examples):
        notes.append(f"{len(examples) - len(agreed):,} left out: labelled {_NO_LABEL!r}, which means no label")
    return Labelled(name=text.name, examples=agreed, notes=tuple(notes))


def _conll_error(name: str) -> CorpusError:
    return CorpusError(f"{name}: CoNLL is for tags. Use: task fit tag, or name the format: --input-format tsv")


def _explain_unlabelled(what: str, records: Sequence[Record]) -> str:
    """Return which is the first record with an empty label, how many there are, and what to do."""
    numbers = [record.number for record in records if not record.cells[-1].strip()]
    if len(numbers) == 1:
        return f"{what} {numbers[0]} has an empty label. Correct it, or leave it out with --skip-unlabelled"
    others = counted(len(numbers) - 1, "other")
    return (
        f"{what} {numbers[0]} and {others} have an empty label. Correct them, or leave them out with --skip-unlabelled"
    )


def _with_agreed_label(examples: Sequence[Example]) -> Sequence[Example]:
    """Return the examples without those labelled `_NO_LABEL`, unless that is a label beside other signs, such as +."""
    others = {example.labels[0] for example in examples} - {_NO_LABEL}
    if len(others) < 2 or not all(label[0].isalnum() for label in others):
        return examples
    return [example for example in examples if example.labels[0] != _NO_LABEL]


def _records(text: DecodedText, kind: str, reading: Reading, *, with_label: bool) -> tuple[Iterator[Record], str]:
    wanted = reading.columns()
    if kind == "jsonl":
        return read_objects(text, wanted, reading.num_texts, with_label=with_label)
    return read_table(text, kind, wanted, reading.num_texts, with_label=with_label)


def _example(name: str, what: str, record: Record, reading: Reading) -> Example:
    *texts, label = record.cells
    label = label.strip()
    if reading.regression and not _is_finite(label):
        raise CorpusError(f"{name}: {what} {record.number}: the label {label[:40]!r} is not a finite number.")
    return Example(tuple(texts), (label,), part=record.part)


def _is_finite(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def _joined(name: str, found: Sequence[Labelled]) -> Labelled:
    """Return the examples of several files of an archive as one."""
    if len({(each.scheme, each.by_words) for each in found}) > 1:
        raise CorpusError(f"{name}: its files have tags of different schemes or units. Give files that are alike.")
    examples = [example for each in found for example in each.examples]
    notes = Counter(note for each in found for note in each.notes)
    return replace(found[0], name=name, examples=examples, notes=tuple(notes))


def iter_pairs(source: Source, reading: Reading) -> Iterator[tuple[str, ...]]:
    """Yield the pairs of texts in a table or in JSON lines; labels are not needed and not read.

    Raises:
        CorpusError: If the file cannot be read, or a column is missing.
    """
    for text in decoded_files(source, reading.encoding, PassedOver()):
        records, _ = _records(text, _format_of(text, reading), reading, with_label=False)
        yield from (record.cells for record in records)
