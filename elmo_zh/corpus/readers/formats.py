"""The format of one file, by what it is named and how it starts, and the reader of each format."""

import json
import re
from collections.abc import Callable, Iterator

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.names import FORMAT_OF_SUFFIX, suffix_of
from elmo_zh.corpus.readers.html_prose import read_html
from elmo_zh.corpus.readers.json_lines import read_json_lines, read_part_of_json_lines
from elmo_zh.corpus.readers.json_values import read_json
from elmo_zh.corpus.readers.markdown_prose import read_markdown
from elmo_zh.corpus.readers.plain import read_plain
from elmo_zh.corpus.readers.tables import read_csv, read_tsv
from elmo_zh.corpus.readers.wikidump import read_wikidump
from elmo_zh.corpus.readers.wikiextractor import read_wikiextractor
from elmo_zh.corpus.tally import PassedOver, Tally

Documents = Iterator[Iterator[str]]

_READERS: dict[str, Callable[[DecodedText, TextConfig, Tally], Documents]] = {
    "text": read_plain,
    "csv": read_csv,
    "tsv": read_tsv,
    "json": read_json,
    "jsonl": read_json_lines,
    "wikiextractor": read_wikiextractor,
    "html": read_html,
    "markdown": read_markdown,
}
_HEAD_CHARACTERS = 2**16
_HTML = re.compile(r"<(?:!doctype html|html[\s>])", re.IGNORECASE)


def find_format(text: DecodedText, wanted: str) -> str:
    """Return the format of a file: the one wanted, else by its suffix, else by its start.

    A .txt file is plain text whatever it holds. A .json file may hold JSON lines, a .xml file is tried as a dump.
    """
    if wanted != "auto":
        return wanted
    by_name = FORMAT_OF_SUFFIX.get(suffix_of(text.content.file_name))
    if by_name == "json":
        return _kind_of_json(text.head(_HEAD_CHARACTERS)) or "json"
    return by_name or _format_of_start(text.head(_HEAD_CHARACTERS))


def _format_of_start(head: str) -> str:
    start = head.lstrip()
    if start.startswith("<mediawiki") or (start.startswith("<?xml") and "<mediawiki" in head[:2000]):
        return "wikidump"
    if re.match(r"<doc [^>]*>", start):
        return "wikiextractor"
    if _HTML.match(start):
        return "html"
    return _kind_of_json(head) or "text"


def _kind_of_json(head: str) -> str | None:
    """Return jsonl if the first line is a whole record and there may be more, json if a value starts there."""
    start = head.lstrip()
    first, line_end, _ = start.partition("\n")
    if first.startswith("{"):
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            # A record of many lines, or one longer than this start of the file.
            return "json" if re.match(r'\{\s*"', start) and (line_end or len(start) > 2**15) else None
        return "jsonl"
    # Not what starts with a link of a wiki.
    return "json" if re.match(r'(?:\[\s*)+[{"]', start) else None


def read_documents(
    kind: str, text: DecodedText, config: TextConfig, tally: Tally, passed_over: PassedOver, *, is_part: bool = False
) -> Documents:
    """Yield the documents of a file, each as its lines, which are to be read before the next document.

    Of a part of a file nothing is asked that only the whole of it has to have.
    """
    if kind == "jsonl" and is_part:
        return read_part_of_json_lines(text, config, tally)
    if kind == "wikidump":
        return read_wikidump(text, config, tally, passed_over)
    return _READERS[kind](text, config, tally)
