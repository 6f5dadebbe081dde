r"""Tagging data in which a sentence is one record: a list of its tokens and a list of their tags.

Known are objects of JSON, {"tokens": ["李", "白"], "ner_tags": ["B-PER", "I-PER"]}, in which the tokens may also be a
text, of which each character has a tag; and tables of two columns, whose items are separated by spaces or by \x02.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.errors import CorpusError
from elmo_zh.tasks.data.conll import LONGEST_LINE, TaggedToken, tagged_examples
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.data.json_objects import iter_objects
from elmo_zh.tasks.data.records import LABEL_NAMES, TEXT_NAMES

_TOKEN_NAMES = ("tokens", "words", "chars", "characters", *TEXT_NAMES)
_TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "ner", *LABEL_NAMES)
_ITEM_SEPARATOR = "\x02"
_SAMPLE_ROWS = 50


def has_token_lists(text: DecodedText, text_column: str, label_column: str) -> bool:
    """Return whether the first object of a file has a list of tags."""
    return next((_fields(record, text_column, label_column) for record in iter_objects(text)), None) is not None


def _fields(record: dict[str, Any], text_column: str, label_column: str) -> tuple[str, str] | None:
    """Return the fields of the tokens and their tags; None if there are none, as in data with spans."""
    tags = next((name for name in ([label_column] if label_column else _TAG_NAMES) if _is_list(record.get(name))), "")
    names = [text_column] if text_column else _TOKEN_NAMES
    tokens = next((name for name in names if name != tags and isinstance(record.get(name), list | str)), "")
    return (tokens, tags) if tokens and tags and len(record[tokens]) == len(record[tags]) else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str | int) for each in value)


def read_token_lists(text: DecodedText, text_column: str, label_column: str) -> tuple[list[Example], list[str], bool]:
    """Return the sentences of JSON objects, as `read_conll` does.

    Raises:
        CorpusError: If an object has not as many tags as tokens, or tags are numbers.
    """
    fields: tuple[str, str] | None = None
    sentences = []
    for number, record in enumerate(iter_objects(text), start=1):
        fields = fields or _fields(record, text_column, label_column)
        tokens, tags = (record.get(name) for name in fields or ("", ""))
        sentences.append(_sentence(f"{text.name}: record {number}", tokens, tags))
    return tagged_examples(text.name, [rows for rows in sentences if rows])


def _sentence(where: str, tokens: Any, tags: Any) -> list[TaggedToken]:
    if not isinstance(tokens, list | str) or not isinstance(tags, list) or len(tokens) != len(tags):
        counts = [len(each) if isinstance(each, list | str) else 0 for each in (tokens, tags)]
        raise CorpusError(f"{where} has {counts[0]} tokens and {counts[1]} tags, expected a tag for each. Correct it.")
    wrong = next((tag for tag in tags if not isinstance(tag, str) or not tag.strip()), None)
    if wrong is not None:
        raise CorpusError(f"{where} has the tag {wrong!r}, expected a name such as B-PER. Write the names of the tags.")
    if not all(isinstance(token, str) and token for token in tokens):
        raise CorpusError(f"{where} has an empty token, or one that is no text. Correct it.")
    return [TaggedToken(token, tag.strip()) for token, tag in zip(tokens, tags, strict=True)]


def is_table_of_lists(text: DecodedText) -> bool:
    """Return whether each of the first rows, but for the names of columns, has as many tags as tokens, and many."""
    rows = [_items(line) for line in islice(text.whole_lines(LONGEST_LINE), _SAMPLE_ROWS) if line]
    rows = rows[1:] if rows and _is_header(rows[0]) else rows
    are_alike = all(len(row) == 2 and len(row[0]) == len(row[1]) for row in rows)
    return bool(rows) and are_alike and sum(len(row[0]) > 1 for row in rows) > len(rows) / 2


def _items(line: str) -> list[list[str]]:
    return [
        cell.split(_ITEM_SEPARATOR) if _ITEM_SEPARATOR in cell else list(filter(None, cell.split(" ")))
        for cell in line.split("\t")
    ]


def _is_header(row: Sequence[Sequence[str]]) -> bool:
    return bool(row[-1]) and row[-1][0].lower() in LABEL_NAMES


def read_table_of_lists(text: DecodedText) -> tuple[list[Example], list[str], bool]:
    """Return the sentences of a table with a sentence and its tags in each row, as `read_conll` does.

    Raises:
        CorpusError: If a row has not as many tags as tokens.
    """
    return tagged_examples(text.name, list(_sentences_of_rows(text)))


def _sentences_of_rows(text: DecodedText) -> Iterator[list[TaggedToken]]:
    for number, line in enumerate(text.whole_lines(LONGEST_LINE), start=1):
        row = _items(line)
        if line.strip() and not (number == 1 and _is_header(row)):
            tokens, tags = row if len(row) == 2 else (row[0], [])
            yield _sentence(f"{text.name}: row {number}", tokens, tags)
