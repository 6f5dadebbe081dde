"""Read JSON files of any structure as a stream: arrays of records or texts, and records that contain arrays."""

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import chain, groupby, islice
from operator import itemgetter

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents, Record
from elmo_zh.corpus.readers.record_texts import WITHOUT_FIELD, choose_fields, joined_line, no_text_error
from elmo_zh.corpus.readers.records import other_columns, starts_as_json_lines
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError

# A text or a number, or None at the start of a record.
Value = str | int | float | Decimal | None

LONGEST_VALUE_BYTES = 2**26
# About the memory that a value takes in a list, besides its characters.
_VALUE_BYTES = 100
DEEPEST = 1000
_SAMPLE_TEXTS = 2000
# Never a character in Unicode; it replaces a lone surrogate while the text passes through the parser.
_SURROGATE_MARK = "\ufdd1"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPED = re.compile(rf"{_HIGH}|{_LOW}")
# An escape follows an even number of backslashes, since two stand for one.
_PAIR_OR_SURROGATE = re.compile(rf"(?<!\\)((?:\\\\)*)(?:({_HIGH}{_LOW})|{_HIGH}|{_LOW})")
# The start of an escape or of a pair at the end of a chunk, which the next chunk may complete.
_UNFINISHED = re.compile(
    rf"(?<!\\)(?:\\\\)*((?:{_HIGH})?\\(?:u[0-9a-fA-F]{{0,3}})?|{_HIGH})\Z"
)  # fmt: skip
_END_CHARACTERS = 2**10


def read_json(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the text of each record as a document; the records are the items of the outermost array."""
    paths = _paths(text, config, tally)
    num_found = 0
    for _, record in groupby(_values(text, _is_outermost_item), key=itemgetter(0)):
        values = ((path, value) for _, path, value in record if isinstance(value, str))
        num_others = 0
        for path, value in values:
            if path in paths:
                num_found += 1
                rest = (text for path, text in values if path in paths)
                yield (line for text in chain([value], rest) for line in lines_of(text))
                break
            num_others += len(value)
        else:
            tally.drop(WITHOUT_FIELD, num_others)
    if not num_found:
        raise _no_text(text, config)


def read_json_records(
    text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver
) -> Iterator[Record]:
    """Yield every item, even one without text, of the outermost array whose items have text in the field."""
    paths = _paths(text, config, tally)
    values = _values(text, lambda around: _is_item_with(around, paths))
    has_text = False
    for _, record in groupby(values, key=itemgetter(0)):
        texts: list[str] = []
        others: list[tuple[str, Value]] = []
        is_item, num_bytes = False, 0
        for _, path, value in record:
            if value is None:
                is_item = True
            elif path in paths and isinstance(value, str):
                texts.append(value)
            elif is_item:
                others.append((path, value))
                num_bytes += _VALUE_BYTES + len(str(value))
                _require_size(text, num_bytes)
        if not (texts or is_item):
            continue
        if not texts:
            tally.drop(WITHOUT_FIELD, sum(len(value) for _, value in others if isinstance(value, str)))
        has_text = has_text or bool(texts)
        yield Record(joined_line(texts), other_columns(others, paths))
    if not has_text:
        raise _no_text(text, config)


def _is_item_with(around: list[str | None], paths: set[str]) -> bool:
    """Return whether a value is an item of an array, is in no other array, and has text at one of these paths."""
    if around[-1] is not None or around.count(None) > 1:
        return False
    array = ".".join(key for key in around if key is not None)
    return not array or any(path == array or path.startswith(f"{array}.") for path in paths)


def _no_text(text: DecodedText, config: TextConfig) -> CorpusError:
    return no_text_error(text.name, config.field, (path for path, _ in _sample(text)))


def _paths(text: DecodedText, config: TextConfig, tally: Tally) -> set[str]:
    paths = choose_fields(config.field, _sample(text), tally)
    if not paths:
        raise _no_text(text, config)
    return set(paths)


def _sample(text: DecodedText) -> Iterator[tuple[str, str]]:
    values = _values(text, _is_outermost_item)
    texts = ((path, value) for _, path, value in values if isinstance(value, str))
    return islice(texts, _SAMPLE_TEXTS)


def _is_outermost_item(around: list[str | None]) -> bool:
    return len(around) == 1 and around[0] is None


def _values(text: DecodedText, starts_record: Callable[[list[str | None]], bool]) -> Iterator[tuple[int, str, Value]]:
    """Yield (record number, path, value) for each text and number; each record starts with (number, "", None)."""
    # Imported here, so that a machine that only trains does not need it.
    import ijson

    stream = _Utf8(text)
    # The enclosing objects (their current key) and arrays (None), outermost first.
    around: list[str | None] = []
    record = num_found = depth = 0
    try:
        for event, value in ijson.basic_parse(stream, buf_size=2**16):
            stream.num_bytes = 0
            if event.startswith("end_"):
                around.pop()
                if len(around) < depth:  # the array of the records has ended
                    record, depth = record + 1, 0
                continue
            if event == "map_key":
                around[-1] = value
                continue
            if around and starts_record(around):
                record, depth = record + 1, len(around)
                yield record, "", None
            if event.startswith("start_"):
                around.append("" if event == "start_map" else None)
                if len(around) > DEEPEST:
                    raise CorpusError(
                        f"{text.name} contains JSON nested more than {DEEPEST} levels deep. Check or flatten the file."
                    )
            elif event in ("string", "number"):
                path = ".".join(key for key in around if key is not None)
                yield record, path, restore_surrogates(value) if event == "string" else value
                num_found += 1
    except (ijson.JSONError, ValueError, SystemError) as error:
        # After a number with thousands of digits, ijson continues with an error set; the next call raises SystemError.
        reason = " ".join(str(error.__cause__ or error).split())[:80]
        unsuitable = UnsuitableError(
            text.name, f"not JSON, or truncated ({reason})", "Check the file's format, or download the file again."
        )
        raise (CorpusError(*unsuitable.messages) if num_found else unsuitable) from None


class _Utf8:
    """The text as a UTF-8 stream that limits how many bytes the parser may read for one value."""

    def __init__(self, text: DecodedText) -> None:
        self._text = text
        self._chunks = mark_surrogates(text.chunks())
        self.num_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next chunk, of any length; nothing for size 0, which ijson uses to test the stream."""
        if size == 0:
            return b""
        data = next(filter(None, self._chunks), "").encode("utf-8", "replace")
        self.num_bytes += len(data)
        _require_size(self._text, self.num_bytes)
        return data


def _require_size(text: DecodedText, num_bytes: int) -> None:
    if num_bytes > LONGEST_VALUE_BYTES:
        raise CorpusError(
            f"{text.name}: a value or a record is larger than {LONGEST_VALUE_BYTES / 2**20:.0f} MiB. Check the"
            " file's format, or split the text into smaller records."
        )


def mark_surrogates(chunks: Iterable[str]) -> Iterator[str]:
    """Yield JSON in chunks that never split an escape, with a mark in place of each escaped lone surrogate."""
    held = ""
    for chunk in chunks:
        text = held + chunk
        held = ""
        if "\\" in text[-12:] and (unfinished := _UNFINISHED.search(text[-_END_CHARACTERS:])):
            held = unfinished[1]
            text = text[: len(text) - len(held)]
        yield _marked(text)
    yield _marked(held)


def _marked(text: str) -> str:
    if not _ESCAPED.search(text):
        return text
    return _PAIR_OR_SURROGATE.sub(lambda match: match[0] if match[2] else match[1] + _SURROGATE_MARK, text)


def restore_surrogates(value: str) -> str:
    """Turn the marks in a text from the parser back into lone surrogates."""
    return value.replace(_SURROGATE_MARK, "\ud800")


def _starts_as_json(head: str) -> bool:
    """Return whether a text starts with a value that spans several lines or is longer than this head."""
    start = head.lstrip()
    if start.startswith("{"):
        is_whole = "\n" not in start and len(start) <= 2**15
        return not is_whole and bool(re.match(r'\{\s*"', start)) and not starts_as_json_lines(head)
    # Wiki links start with [[ too.
    return bool(re.match(r'(?:\[\s*)+[{"]', start))


FORMAT = CorpusFormat(
    read=read_json, title="JSON", suffixes=(".json",), starts=_starts_as_json, read_records=read_json_records
)
