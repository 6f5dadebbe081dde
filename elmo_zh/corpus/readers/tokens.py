"""Read text that another program has segmented: vertical files with one token per line, and words with tags.

Words are separated by spaces, which no segmenter removes: it can only divide them further. Vertical files come from
CWB, Sketch Engine, `concordance --output FILE.vrt`, or are CoNLL. In tagged text, as in the People's Daily corpus, each
word has a tag: 我们/r 充满/v.
"""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents, Record
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.language import N_

_LONGEST_LINE = 2**20
_MARKUP = "vertical: columns and tags"
_TAG = "tags of words"
_TAG_LINE = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:\s[^<>]*)?)/?>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
# Elements that hold other text than one sentence; a line never goes beyond them.
_BLOCKS = ("text", "doc", "p", "div", "head", "article")
_DOCUMENTS = ("text", "doc", "article")
_ENDS = ("。", "！", "？", "!", "?")
_CONLLU_COLUMNS = 8
_SAMPLE_LINES = 200
_LONGEST_TOKEN, _MEAN_TOKEN = 20, 4
_WORD_AND_TAG = re.compile(r"\[?(.+)[/_]([A-Za-z][A-Za-z0-9]{0,4})(?:\][A-Za-z]{1,5})?")
# A paragraph of the People's Daily corpus begins with its date and number; some characters show how they are read.
_NUMBER, _SOUND = re.compile(r"\d{8}-\d\d-\d{3}-\d{3}/m"), re.compile(r"(?<=[一-鿿])\{[a-z0-9]+\}")


def _is_comment(line: str) -> bool:
    return line.startswith("# ") and "\t" not in line


class _Vertical:
    """Collects the tokens of a vertical file into sentences, with the attributes of the elements around them."""

    def __init__(self, text: DecodedText, tally: Tally) -> None:
        self._text, self._tally = text, tally
        self._open: list[tuple[str, dict[str, str]]] = []
        self._tokens: list[str] = []
        self._document = 0

    def sentences(self) -> Iterator[tuple[int, Record]]:
        """Yield the number of its document and the text of each sentence, with columns such as text_year."""
        for line in self._text.whole_lines(_LONGEST_LINE):
            tag = _TAG_LINE.fullmatch(line.strip())
            token = "" if tag else self._token(line)
            self._tally.drop(_MARKUP, len(line) - len(token), items=0)
            if (tag and tag[2] in ("s", *_BLOCKS)) or not (tag or line.strip()):
                yield from self._sentence()
            if tag:
                self._enter(tag, line)
            elif token:
                self._tokens.append(html.unescape(token))
                if token in _ENDS and all(name != "s" for name, _attributes in self._open):
                    yield from self._sentence()
        yield from self._sentence()

    def _token(self, line: str) -> str:
        cells = line.split("\t")
        if _is_comment(line):
            return ""
        if len(cells) >= _CONLLU_COLUMNS and cells[0][:1].isdecimal():
            return cells[1] if cells[0].isdecimal() else ""
        return cells[0].strip()

    def _enter(self, tag: re.Match[str], line: str) -> None:
        name = tag[2]
        if tag[1]:
            while self._open and self._open.pop()[0] != name:
                pass
        elif not line.rstrip().endswith("/>"):
            self._document += name in _DOCUMENTS
            attributes = {key: html.unescape(a or b) for key, a, b in _ATTRIBUTE.findall(tag[3])}
            self._open.append((name, attributes))

    def _sentence(self) -> Iterator[tuple[int, Record]]:
        if self._tokens:
            columns = {f"{name}_{key}": value for name, given in self._open for key, value in given.items()}
            yield self._document, Record(" ".join(self._tokens), columns)
            self._tokens = []


def _read_vertical(text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield each text of the corpus as a document."""
    for _number, sentences in groupby(_Vertical(text, tally).sentences(), key=lambda pair: pair[0]):
        yield (record.line for _document, record in sentences)


def _read_sentences(text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Iterator[Record]:
    return (record for _number, record in _Vertical(text, tally).sentences())


def _starts_as_vertical(head: str) -> bool:
    """Return whether nearly all lines are tags or short tokens, with tags of other elements or columns around them."""
    lines = _sample(head)
    others = [line for line in lines if line.strip() and not (_TAG_LINE.fullmatch(line.strip()) or _is_comment(line))]
    has_tags = any(line.startswith("</") for line in lines)
    num_columns = {len(line.split("\t")) for line in others}
    if len(others) < 3 or not (has_tags or (min(num_columns) > 1 and "" in lines)):
        return False
    cells = [line.split("\t") for line in others]
    tokens = [row[1] if len(row) >= _CONLLU_COLUMNS and row[0][:1].isdecimal() else row[0] for row in cells]
    is_short = all(len(token) <= _LONGEST_TOKEN and " " not in token.strip() for token in tokens)
    return len(num_columns) <= 2 and is_short and sum(map(len, tokens)) <= _MEAN_TOKEN * len(tokens)


def _read_tagged(text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    yield (record.line for record in _tagged_lines(text, tally))


def _read_tagged_lines(
    text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver
) -> Iterator[Record]:
    return _tagged_lines(text, tally)


def _tagged_lines(text: DecodedText, tally: Tally) -> Iterator[Record]:
    for line in text.whole_lines(_LONGEST_LINE):
        read = " ".join(_words(line.split()))
        tally.drop(_TAG, max(0, len(line) - len(read)), items=0)
        yield Record(read)


def _words(items: Iterable[str]) -> Iterator[str]:
    for item in items:
        match = _WORD_AND_TAG.fullmatch(item)
        if not _NUMBER.fullmatch(item):
            yield _SOUND.sub("", match[1]) if match else item


def _starts_as_tagged(head: str) -> bool:
    """Return whether nearly all items between spaces are words with tags."""
    items = [item for line in _sample(head) for item in line.split()]
    return len(items) >= 5 and sum(1 for item in items if _WORD_AND_TAG.fullmatch(item)) >= 0.9 * len(items)


def _sample(head: str) -> list[str]:
    lines = head.split("\n")
    return [line.rstrip("\r") for line in (lines[:-1] if len(lines) > 1 else lines)[:_SAMPLE_LINES]]


VERTICAL = CorpusFormat(
    read=_read_vertical,
    read_records=_read_sentences,
    title=N_("vertical text"),
    has_fields=False,
    suffixes=(".vrt", ".vert"),
    starts=_starts_as_vertical,
    is_in_text_files=True,
)
TAGGED = CorpusFormat(
    read=_read_tagged,
    read_records=_read_tagged_lines,
    title=N_("words with tags"),
    has_fields=False,
    starts=_starts_as_tagged,
    is_in_text_files=True,
)
