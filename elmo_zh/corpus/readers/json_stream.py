"""Read the records of a JSON file of any structure as a stream, in bounded memory."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.files import parse_json

LONGEST_VALUE_BYTES = 2**26
# About the memory that a value takes, besides its characters.
_VALUE_BYTES = 100
DEEPEST = 1000
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

# The keys of the enclosing objects, and None for each enclosing array, outermost first.
Around = list[str | None]


def iter_items(text: DecodedText, paths: Collection[str] = ()) -> Iterator[Any]:
    """Yield the records of a JSON file: the items of its outermost array or, with `paths`, of the one with these paths.

    A path is the keys to a value, joined by dots; arrays do not appear in it. A record inside objects comes inside the
    same keys, so that the paths in it are those in the file. A file without such an array is one record.
    """

    def is_item(around: Around) -> bool:
        if not around or around[-1] is not None or around.count(None) > 1:
            return False
        array = ".".join(key for key in around if key is not None)
        return not array or any(path == array or path.startswith(f"{array}.") for path in paths)

    has_items = False
    for item in _built(text, is_item):
        has_items = True
        yield item
    if not has_items:
        yield from (value for value in _built(text, lambda around: not around) if value != [])


def iter_texts(text: DecodedText) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each text in a JSON file."""
    for around, event, value in _events(text):
        if event == "string":
            yield ".".join(key for key in around if key is not None), value


def _built(text: DecodedText, is_wanted: Callable[[Around], bool]) -> Iterator[Any]:
    """Yield the values at the wanted places; no wanted value may be inside another one."""
    from ijson.common import ObjectBuilder

    builder, depth, prefix = None, 0, list[str]()
    num_bytes = 0
    for around, event, value in _events(text):
        if builder is None and event != "map_key" and not event.startswith("end_") and is_wanted(around):
            builder, depth, num_bytes = ObjectBuilder(map_type=_Object), len(around), 0
            prefix = [key for key in around if key is not None]
        if builder is not None:
            builder.event(event, value)
            num_bytes += _VALUE_BYTES + (len(value) if event in ("string", "map_key") else 0)
            _require_size(text, num_bytes)
            if len(around) == depth and not event.startswith("start_"):
                item = builder.value
                for key in reversed(prefix):
                    item = {key: item}
                builder = None
                yield item


class _Object(dict[str, Any]):
    """An object in which a repeated key has a list of all its values, so that none is lost."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, [self[key], value] if key in self else value)


def _events(text: DecodedText) -> Iterator[tuple[Around, str, Any]]:
    """Yield each event of the parser with the objects and arrays around its value."""
    # Imported here, so that a machine that only trains does not need it.
    import ijson

    stream = _Utf8(text)
    around: Around = []
    num_events = 0
    try:
        for event, value in ijson.basic_parse(stream, buf_size=2**16, use_float=True):
            num_events += 1
            stream.num_bytes = 0
            if event.startswith("end_"):
                around.pop()
            yield around, event, restore_surrogates(value) if event == "string" else value
            if event == "map_key":
                around[-1] = value
            elif event.startswith("start_"):
                around.append("" if event == "start_map" else None)
                if len(around) > DEEPEST:
                    raise CorpusError(
                        _("{name} contains JSON nested more than {depth} levels deep. Flatten the file.").format(
                            name=text.name, depth=DEEPEST
                        )
                    )
    except (ijson.JSONError, ValueError, SystemError, OverflowError) as error:
        # After a number with thousands of digits, ijson continues with an error set; the next call raises SystemError.
        reason = " ".join(str(error.__cause__ or error).split())[:80]
        unsuitable = UnsuitableError(
            text.name,
            N_("not JSON, or truncated"),
            _("Check the file's format, or download the file again."),
            reason,
        )
        raise (CorpusError(*unsuitable.messages) if num_events > 1 else unsuitable) from None


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
            _("{name}: a value or a record is larger than {size} MiB. Split the text into smaller records.").format(
                name=text.name, size=LONGEST_VALUE_BYTES // 2**20
            )
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


def starts_as_json(head: str) -> bool:
    """Return whether a text starts with a value that spans several lines or is longer than this head."""
    start = head.lstrip()
    if start.startswith("{"):
        is_whole = "\n" not in start and len(start) <= 2**15
        first = start.partition("\n")[0]
        return not is_whole and bool(re.match(r'\{\s*"', start)) and not _is_json(first)
    # Wiki links start with [[ too.
    return bool(re.match(r'(?:\[\s*)+[{"]', start))


def _is_json(line: str) -> bool:
    try:
        return parse_json(line) is not None
    except ValueError:
        return False
