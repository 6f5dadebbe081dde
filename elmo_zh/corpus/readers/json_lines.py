"""JSON lines: one record per line, with its text in a field."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.readers.fields import (
    BLANK_LINES,
    WITHOUT_FIELD,
    choose_fields,
    joined_line,
    listed,
    parse_fields,
    strings_with_paths,
    texts_at,
)
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError

LONGEST_RECORD = 2**26
NOT_JSON = "lines that are not JSON"
_SAMPLE_RECORDS = 50


def read_json_lines(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield each record's text as a document.

    Raises:
        CorpusError: If no record has the field; with bad_bytes = strict, if a line is not JSON.
    """
    records = json_records(text, config, tally)
    sample = list(islice(records, _SAMPLE_RECORDS))
    paths = _paths(text, config, sample, tally)
    num_read = 0
    for document in _documents(chain(sample, records), paths, tally):
        num_read += 1
        yield document
    if not num_read:
        raise _no_text(text, config, sample)


def read_range_of_json_lines(
    text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver
) -> Documents:
    """Yield each record's text in a byte range as a document; `config` names the fields found in the whole file."""
    return _documents(json_records(text, config, tally), list(parse_fields(config.field)) or [""], tally)


def read_records_of_json_lines(
    text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver
) -> Iterator[str]:
    """Yield each record's text as one line.

    Raises:
        CorpusError: If a line is not JSON, or no record has the field.
    """
    records = json_records(text, config, tally, keeps_all=True)
    sample = list(islice(records, _SAMPLE_RECORDS))
    paths = _paths(text, config, sample, tally)
    has_text = False
    for texts in _texts(chain(sample, records), paths, tally):
        has_text = has_text or bool(texts)
        yield joined_line(texts)
    if not has_text:
        raise _no_text(text, config, sample)


def _documents(records: Iterable[Any], paths: list[str], tally: Tally) -> Documents:
    for texts in filter(None, _texts(records, paths, tally)):
        yield lines_of(texts[0]) if len(texts) == 1 else chain.from_iterable(map(lines_of, texts))


def _texts(records: Iterable[Any], paths: list[str], tally: Tally) -> Iterator[list[str]]:
    """Yield the texts of each record, also of those that have none, which are counted."""
    for record in records:
        texts = texts_at(record, paths)
        if not texts:
            tally.drop(WITHOUT_FIELD, sum(len(value) for _, value in strings_with_paths(record)))
        yield texts


def json_records(
    text: DecodedText, config: TextConfig, tally: Tally, *, keeps_all: bool = False, advice: str = ""
) -> Iterator[Any]:
    """Yield the record of each line that is not blank.

    Args:
        text: The file.
        config: Tells what becomes of lines that are not JSON.
        tally: Counts such lines, and blank ones with `keeps_all`.
        keeps_all: A line that is not JSON is an error in any case.
        advice: What to do about it then; by default to read the file as plain text.

    Raises:
        CorpusError: If a line is not JSON.
    """
    decode = json.JSONDecoder(object_pairs_hook=_joined_pairs).raw_decode
    for number, line in enumerate(text.whole_lines(LONGEST_RECORD), start=1):
        stripped = line.strip()
        if not stripped:
            if keeps_all:
                tally.drop(BLANK_LINES, 0)
            continue
        try:
            record, end = decode(stripped)
            if end < len(stripped):
                raise ValueError(f"something else follows at character {end + 1}")
        except (ValueError, RecursionError) as error:
            if keeps_all:
                advice = advice or "Correct it, or read the file as plain text: --input-format text"
                raise CorpusError(f"{text.name}: line {number} is not JSON ({error}). {advice}") from None
            if config.bad_bytes == "strict":
                raise CorpusError(f"{text.name}: line {number} is not JSON ({error}). {_ADVICE}") from None
            tally.drop(NOT_JSON, len(line))
        else:
            yield record


def _joined_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; for a repeated key a list of all its values, so that none is lost."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: found if len(found) > 1 else found[0] for key, found in values.items()}


_ADVICE = "Correct it, or leave such lines out: --bad-bytes skip-line"


def _paths(text: DecodedText, config: TextConfig, sample: list[Any], tally: Tally) -> list[str]:
    paths = choose_fields(config.field, chain.from_iterable(map(strings_with_paths, sample)), tally)
    if not paths:
        raise _no_text(text, config, sample)
    return paths


def _no_text(text: DecodedText, config: TextConfig, sample: list[Any]) -> CorpusError:
    paths = {path for record in sample for path, _ in strings_with_paths(record)}
    if not sample:
        return UnsuitableError(
            text.name, "without one line of JSON", "Check its format: --input-format text, for example."
        )
    if config.field:
        return CorpusError(
            f"{text.name}: no record has text in the field {config.field}. The fields of the first ones are:"
            f" {listed(paths)}."
        )
    return UnsuitableError(
        text.name, f"no field is text for sure among {listed(paths)}", "Name one or several: --field NAME"
    )


def starts_as_json_lines(head: str) -> bool:
    """Return whether the first line of a text is a whole record."""
    first = head.lstrip().partition("\n")[0]
    return first.startswith("{") and _is_json(first)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


FORMAT = CorpusFormat(
    read=read_json_lines,
    suffixes=(".jsonl", ".ndjson"),
    starts=starts_as_json_lines,
    read_range=read_range_of_json_lines,
    read_records=read_records_of_json_lines,
)
