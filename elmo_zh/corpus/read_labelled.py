"""Read labelled examples of any kind, or unlabelled pairs of texts, from a file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText, refuse_surrogates
from elmo_zh.corpus.names import EXCEL_SUFFIX, suffix_of
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.readers.columns import is_number
from elmo_zh.corpus.readers.conll import read_conll
from elmo_zh.corpus.readers.examples import (
    OUTSIDE,
    Example,
    Labelled,
    describe_tags,
    detect_scheme,
    marks_span,
    spans_of,
    tags_of,
    without_biluo,
)
from elmo_zh.corpus.readers.formats import find_record_format
from elmo_zh.corpus.readers.json_tags import (
    has_token_lists,
    is_table_of_lists,
    read_spans,
    read_table_of_lists,
    read_token_lists,
)
from elmo_zh.corpus.readers.labelled_records import (
    LabelledRecord,
    LabelledRecords,
    UnlabelledError,
    labelled_records,
    names_in,
)
from elmo_zh.corpus.readers.rows import starts_as_objects
from elmo_zh.corpus.sources import Source, find_sources
from elmo_zh.corpus.tally import PassedOver
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import counted

_FORMAT_OF_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".conll": "conll",
    ".conllu": "conll", ".bio": "conll", ".bmes": "conll", ".bioes": "conll",
}  # fmt: skip
# Datasets for natural language inference give this label to examples on which the annotators did not agree.
_NO_LABEL = "-"
# fastText's prefix of labels.
_FASTTEXT, _LONGEST_LINE = "__label__", 2**20
# A file with no more examples may be sorted by label by chance.
_LEAST_EXAMPLES = 20


def read_labelled(path: Path, reading: Reading) -> Labelled:
    """Read all examples of a file, which may be compressed or an archive, in any encoding that `segment` reads."""
    if path.is_dir():
        raise CorpusError(_("{path} is a folder. Give a file of labelled examples.").format(path=path))
    found: list[Labelled] = []
    for source in find_sources([str(path)]).sources:
        for text in decoded_files(source, reading.encoding, PassedOver()):
            read = _read_tags if reading.kind == "tag" else _read_records
            labelled = read(text, _format_of(text, reading), reading)
            for number, example in enumerate(labelled.examples, start=1):
                refuse_surrogates(" ".join(example.labels), number, f"{text.name}: the labels")
            if text.encoding.name != "utf-8":
                encoding = _("encoding {upper}").format(upper=text.encoding.name.upper())
                labelled = replace(labelled, notes=(encoding, *labelled.notes))
            found.append(labelled)
    if not found:
        raise CorpusError(_("{path} contains no file of labelled examples. Give another file.").format(path=path))
    return _joined(str(path), found)


def _joined(name: str, found: Sequence[Labelled]) -> Labelled:
    if len({(each.scheme, each.by_words) for each in found}) > 1:
        raise CorpusError(
            _(
                "The files in {name} tag different units (words or characters), or use different tag schemes. Give"
                " files with the same units and scheme."
            ).format(name=name)
        )
    examples = [example for each in found for example in each.examples]
    notes = Counter(note for each in found for note in each.notes)
    return replace(found[0], name=name, examples=examples, notes=tuple(notes))


def iter_pairs(source: Source, reading: Reading) -> Iterator[tuple[str, ...]]:
    """Yield the pairs of texts in a table or JSON lines, ignoring labels."""
    for text in decoded_files(source, reading.encoding, PassedOver()):
        found = labelled_records(text, _format_of(text, reading), reading, with_label=False)
        yield from (record.cells for record in found.records)


def with_field_of_task(source: Source, config: TextConfig, field: str) -> TextConfig:
    """Return settings that read the field a task was trained on, if the source has it and no field is named."""
    if config.field or not field or field.isdecimal():
        return config
    try:
        for text in decoded_files(source, config.encoding, PassedOver()):
            if field in names_in(text, find_record_format(text, config.format)):
                return replace(config, field=field)
    except UnsuitableError:
        pass  # reading the lines raises it again
    return config


def _format_of(text: DecodedText, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    kind = _FORMAT_OF_SUFFIX.get(suffix_of(text.content.file_name))
    if kind is None or (kind == "tsv" and reading.kind == "tag"):
        head = text.head(2**16)
        if starts_as_objects(head):
            return "jsonl"
        if head.lstrip().startswith(_FASTTEXT):
            return "fasttext"
        if reading.kind == "tag":
            return "conll"
        return "tsv" if "\t" in head.partition("\n")[0] else "csv"
    return kind


def _read_tags(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    if kind == "csv" and '""start""' in text.head(2**16):
        raise CorpusError(
            _("{name} is a CSV file of Label Studio. Export the same project as JSON-MIN instead.").format(
                name=text.name
            )
        )
    if kind in ("csv", "fasttext"):
        raise CorpusError(
            _(
                "{name}: tags are read from CoNLL or JSON lines. For one label per text, use task fit classify. For"
                " tags, put a token, a tab and its tag on each line, and a blank line after each sentence; if the file"
                " already has this form, add: --input-format conll"
            ).format(name=text.name)
        )
    names = names_in(text, kind) if kind == "jsonl" else filter(str.isdecimal, reading.task_columns)
    columns = reading.columns_in({*names})
    if kind == "jsonl" and not has_token_lists(text, *columns):
        examples, notes = read_spans(text, *columns)
        scheme, by_words = "BIOES", False
    else:
        if kind == "jsonl":
            examples, notes, by_words = read_token_lists(text, *columns)
        elif is_table_of_lists(text):
            kind = "tsv"
            examples, notes, by_words = read_table_of_lists(text)
        else:
            examples, notes, by_words = read_conll(text, *columns)
        examples = without_biluo(examples)
        scheme = detect_scheme(chain.from_iterable(example.labels for example in examples), text.name)
        if scheme:
            examples, num_wrong = in_bioes(examples)
            if num_wrong:
                notes.append(
                    counted(
                        num_wrong,
                        "{number} tag with no span to continue, treated as starting a span, as in conlleval",
                        "{number} tags with no span to continue, each treated as starting a span, as in conlleval",
                    )
                )
    scheme_note = describe_tags(scheme, by_words=by_words)
    notes.insert(0, _("{kind} format, {scheme}").format(kind=kind, scheme=scheme_note))
    named = columns if any(columns) else ()
    return Labelled(
        name=text.name, examples=examples, scheme=scheme, by_words=by_words, columns=named, notes=tuple(notes)
    )


def in_bioes(examples: Sequence[Example]) -> tuple[list[Example], int]:
    """Convert the tags of examples to BIOES; return the examples and how many tags did not fit the tag before them."""
    converted, num_wrong = [], 0
    for example in examples:
        spans, wrong = spans_of(example.labels)
        num_wrong += wrong
        converted.append(replace(example, labels=tuple(tags_of(spans, len(example.labels)))))
    return converted, num_wrong


def _read_records(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    conll = _("{name} looks like CoNLL. Use task fit tag or, for one label per text, add: --input-format tsv").format(
        name=text.name
    )
    if kind == "conll":
        raise CorpusError(conll)
    left_out = Counter[str]()
    opened = _fasttext_records(text) if kind == "fasttext" else labelled_records(text, kind, reading, left_out)
    records = list(opened.records)
    if not records:
        raise CorpusError(
            _("{name} has no rows below the column names. Add labelled rows, or give another file.").format(
                name=text.name
            )
        )
    labelled = [record for record in records if record.label]
    if not labelled and (len(records) > 1 or reading.skips_unlabelled):
        raise UnlabelledError(_("{name}: all labels are empty. Give examples with labels.").format(name=text.name))
    is_excel = suffix_of(text.content.name) == EXCEL_SUFFIX
    form = _("Excel, {note}") if is_excel else _("{kind} format, {note}")
    notes = [form.format(kind=kind, note=opened.note), *(f"{what}: {count:,}" for what, count in left_out.items())]
    if len(labelled) < len(records):
        if not reading.skips_unlabelled:
            first = next(record.what for record in records if not record.label)
            raise CorpusError(
                _(
                    "{name}: empty labels: {number}, the first in {first}. Add the labels, or leave such examples out"
                    " with --skip-unlabelled"
                ).format(name=text.name, number=f"{len(records) - len(labelled):,}", first=first)
            )
        notes.append(
            _("left out because the label is empty: {value}").format(value=f"{len(records) - len(labelled):,}")
        )
    labels = {record.label for record in labelled}
    if reading.format == "auto" and OUTSIDE in labels and any(map(marks_span, labels)):
        raise CorpusError(conll)
    wrong = next((record for record in labelled if reading.regression and not is_number(record.label)), None)
    if wrong is not None:
        raise CorpusError(
            _(
                "{name}: {what}: the label {label} is not a finite number. Correct the label, or leave out"
                " --regression."
            ).format(name=text.name, what=wrong.what, label=repr(wrong.label[:40]))
        )
    examples = [Example(record.texts, (record.label,), part=record.part) for record in labelled]
    changes = sum(before.labels != after.labels for before, after in pairwise(examples))
    if len(examples) > _LEAST_EXAMPLES and 1 < len(labels) == changes + 1 < len(examples) / 2:
        notes.append(_("the file is sorted by label"))
    agreed = examples if reading.regression else _with_agreed_label(examples)
    if len(agreed) < len(examples):
        notes.append(
            _("left out because the label is {NO_LABEL} (unlabelled): {value}").format(
                NO_LABEL=repr(_NO_LABEL), value=f"{len(examples) - len(agreed):,}"
            )
        )
    return Labelled(name=text.name, examples=agreed, columns=opened.used_columns, notes=tuple(notes))


def _fasttext_records(text: DecodedText) -> LabelledRecords:
    return LabelledRecords(_iter_fasttext(text), _("labels with {prefix}").format(prefix=_FASTTEXT), ())


def _iter_fasttext(text: DecodedText) -> Iterator[LabelledRecord]:
    """Yield the lines of fastText's format: a label with its prefix, and the words of a text.

    Spaces between words are removed, since texts to label have none; those between Latin words stay.
    """
    for number, line in enumerate(text.whole_lines(_LONGEST_LINE), start=1):
        words = line.split()
        labels = [word.removeprefix(_FASTTEXT) for word in words if word.startswith(_FASTTEXT)]
        if len(labels) > 1:
            raise CorpusError(
                _("{name}: line {number} has {count} labels; expected one. Keep one label on each line.").format(
                    name=text.name, number=number, count=len(labels)
                )
            )
        joined = ""
        for word in words:
            if not word.startswith(_FASTTEXT):
                needs_space = (
                    joined[-1:].isascii() and joined[-1:].isalnum() and word[0].isascii() and word[0].isalnum()
                )
                joined += f" {word}" if needs_space else word
        if words:
            what = _("line {number}").format(number=number)
            yield LabelledRecord(what=what, cells=(joined, *(labels or [""])), part="")


def _with_agreed_label(examples: Sequence[Example]) -> Sequence[Example]:
    """Leave out examples labelled `_NO_LABEL`, unless other labels are symbols too, such as +."""
    others = {example.labels[0] for example in examples} - {_NO_LABEL}
    if len(others) < 2 or not all(label[0].isalnum() for label in others):
        return examples
    return [example for example in examples if example.labels[0] != _NO_LABEL]
