"""JSON files of any shape, read as a stream: arrays of records or of texts, and records that hold arrays."""

from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.readers.fields import known_path, listed, parse_fields
from elmo_zh.corpus.readers.json_escapes import marked_halves, with_halves
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError

LONGEST_VALUE_BYTES = 2**26
DEEPEST = 1000
_SAMPLE_TEXTS = 2000


def read_json(text: DecodedText, config: TextConfig, tally: Tally) -> Iterator[Iterator[str]]:
    """Yield the text of each record, that is of each item of the outermost array, as a document.

    Raises:
        CorpusError: If the file is not JSON, is nested too deep, or has no text in the field.
    """
    paths = _paths(text, config)
    tally.read_field = listed(paths)
    num_found = 0
    chosen = ((record, value) for record, path, value in _strings(text) if path in paths)
    for _, texts in groupby(chosen, key=lambda pair: pair[0]):
        num_found += 1
        yield (line for _, value in texts for line in lines_of(value))
    if not num_found:
        raise CorpusError(
            f"{text.name}: nothing has text in the field {config.field}. The fields at its start are:"
            f" {listed(_sample_paths(text))}."
        )


def _paths(text: DecodedText, config: TextConfig) -> set[str]:
    if config.field:
        return set(parse_fields(config.field))
    paths = _sample_paths(text)
    known = known_path(paths)
    if known is None and paths == {""}:
        known = ""
    if known is None:
        raise UnsuitableError(
            text.name, f"no field is text for sure among {listed(paths)}", "Name one or several: --field NAME"
        )
    return {known}


def _sample_paths(text: DecodedText) -> set[str]:
    return {path for _, (_, path, _) in zip(range(_SAMPLE_TEXTS), _strings(text), strict=False)}


def _strings(text: DecodedText) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the record, the keys that lead to it, and the value of every text in the file."""
    # Only here, so that training does not need it on its machine.
    import ijson

    stream = _Utf8(text)
    # A key for each object around the place, None for each array.
    around: list[str | None] = []
    record = num_found = 0
    try:
        for event, value in ijson.basic_parse(stream, buf_size=2**16):
            stream.num_bytes = 0
            if event.startswith("end_"):
                around.pop()
                continue
            if event == "map_key":
                around[-1] = value
                continue
            record += len(around) == 1 and around[0] is None
            if event.startswith("start_"):
                around.append("" if event == "start_map" else None)
                if len(around) > DEEPEST:
                    raise CorpusError(f"{text.name} is nested deeper than {DEEPEST} levels, which no corpus should be.")
            elif event == "string":
                yield record, ".".join(key for key in around if key is not None), with_halves(value)
                num_found += 1
    except (ijson.JSONError, ValueError, SystemError) as error:
        # Of a number of thousands of digits ijson goes on with an error set, which the next call makes a SystemError.
        told = " ".join(str(error.__cause__ or error).split())[:80]
        unsuitable = UnsuitableError(
            text.name, f"not JSON, or cut off ({told})", "Check its format, or fetch it again."
        )
        raise (CorpusError(*unsuitable.messages) if num_found else unsuitable) from None


class _Utf8:
    """The text as UTF-8 bytes, with an end to how many the parser may take for one value."""

    def __init__(self, text: DecodedText) -> None:
        self._text = text
        self._chunks = marked_halves(text.chunks())
        self.num_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, of any length; asked for none, as ijson does to see what comes, return none."""
        if size == 0:
            return b""
        data = next(filter(None, self._chunks), "").encode("utf-8", "replace")
        self.num_bytes += len(data)
        if self.num_bytes > LONGEST_VALUE_BYTES:
            raise CorpusError(
                f"{self._text.name}: a single text is longer than {LONGEST_VALUE_BYTES / 2**20:.0f} MiB,"
                " which no record should be. Check its format, or split it."
            )
        return data
