"""Read plain text, and text that other programs have divided: vertical files, words with tags, subtitles.

A layout of plain text that would silently give wrong words is noted, for a message that says what to do. Vertical files
have one token per line, as in CWB, Sketch Engine, `concordance --output FILE.vrt` and CoNLL. In tagged text, as in the
People's Daily corpus, each word has a tag: 我们/r 充满/v. The words of both are returned separated by spaces; a
segmenter may divide them further. Without --json, wikiextractor writes each article between <doc ...> and </doc>.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import without_variants
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Record, load_format
from elmo_zh.corpus.text_files import joined_lines, usual_width
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.script import HAN

# The names are keys of records.
LAYOUTS = {
    "hard line breaks": N_(
        "{names}: most lines end in the middle of a sentence, so words may be split between lines. To join such lines,"
        " add: --set text.join_lines=true"
    ),
    "time codes": N_("{names}: lines begin with time codes, which are read as words. Remove them."),
    "markup": N_("{names}: the text has markup that is read as words. Convert it to plain text or HTML."),
    "format": N_("{names}: the text looks like {example}, but is read as plain text. Add: --input-format {example}"),
    "line starts": N_(
        "{names}: each line begins with a short field (such as {example}), which is read as text. Remove it, or put a"
        " tab after it and add: --input-format tsv --field 2"
    ),
    "words": N_("{names}: words are already separated by spaces. To keep them, add: --set text.segmenter=whitespace"),
}
_LEAST_LINES, _MOST_LINES = 4, 200
_SENTENCE_END = re.compile(r"[。！？!?…；;：:”’」』）)》\"]\s*$")
_TIME = re.compile(r"\s*[\[(（【<]?(?:\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?[ T]*)?\d{1,2}[:：]\d{2}(?:[:：]\d{2})?")
_MARKUP_START = re.compile(r"\s*(?:<\?xml|<TEI|<!DOCTYPE|\\documentclass|\\begin\{)")
_XML_LINE = re.compile(r"\s*</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?>|.*?<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>[^<>]*</\1>")
_SEPARATORS = ("\t", "：", ":", "|", ",", " ", "、", ".")
_LONGEST_FIELD = 20


def find_layout(head: str) -> tuple[str, str]:
    """Return the key in `LAYOUTS` that fits the start of a text, and the example for its message, or "" for either."""
    lines = [line for line in _sample(head) if line.strip()]
    for kind in ("html", "jsonl", "json"):
        if load_format(kind).starts(head):
            return "format", kind
    if _MARKUP_START.match(head) or _share(lines, _XML_LINE) > 0.5:
        return "markup", ""
    if len(lines) < _LEAST_LINES:
        return "", ""
    if _share(lines, _TIME) > 0.4:
        return "time codes", ""
    for separator, kind in (("\t", "tsv"), (",", "csv")):
        if lines[0].count(separator) and len({line.count(separator) for line in lines}) == 1:
            return "format", kind
    if field := _first_field(lines):
        return "line starts", field
    if _is_segmented(lines):
        return "words", ""
    return ("hard line breaks", "") if _has_hard_breaks(head, lines) else ("", "")


def layout_messages(layouts: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    """Yield one message for each layout, given the name of each source and its layouts with examples."""
    names: dict[str, list[str]] = {}
    examples: dict[str, str] = {}
    for name, examples_of_source in layouts:
        for layout, example in examples_of_source.items():
            names.setdefault(layout, []).append(name)
            examples.setdefault(layout, example)
    for layout, found in names.items():
        yield _(LAYOUTS[layout]).format(names=first_ten(found), example=examples[layout])


def _share(lines: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(1 for line in lines if pattern.match(line)) / len(lines) if len(lines) > 2 else 0.0


def _first_field(lines: Sequence[str]) -> str:
    """Return an example of the field at the start of nearly all lines (a label, a speaker or a number), or ""."""
    for separator in _SEPARATORS:
        fields = [
            line[: _LONGEST_FIELD + 1].partition(separator)[0]
            for line in lines
            if separator in line[: _LONGEST_FIELD + 1]
        ]
        if len(fields) < 0.9 * len(lines):
            continue
        are_few = len(set(fields)) <= max(2, len(fields) // 5) and len(fields) > 5
        are_numbers = all(any(sign.isdecimal() for sign in field) and not HAN.search(field) for field in fields)
        are_labels = all(field.startswith("__label__") for field in fields)
        if are_few or are_numbers or are_labels:
            return fields[0]
    return ""


def _is_segmented(lines: Sequence[str]) -> bool:
    words = [word for line in lines for word in line.split()]
    with_han = [word for word in words if HAN.search(word)]
    return len(words) >= 5 * len(lines) and sum(map(len, with_han)) <= 3 * len(with_han) > len(words)


def _has_hard_breaks(head: str, lines: Sequence[str]) -> bool:
    """Return whether at least half of the lines end inside a sentence, most of these at about the usual width."""
    all_lines = [line.strip() for line in head.split("\n")][:_MOST_LINES]
    open_lines = [
        line
        for line, following in pairwise(all_lines)
        if following and HAN.search(line) and not _SENTENCE_END.search(line)
    ]
    width = usual_width(head)
    num_full = sum(1 for line in open_lines if 0.8 * width <= len(line) <= 1.25 * width)
    return 10 <= width <= 100 and len(open_lines) >= 0.5 * len(lines) and num_full >= 0.8 * len(open_lines)


_HEAD_CHARACTERS = 2**16
_ARTICLE = re.compile(r"\s*<doc [^>]*>")


def read_plain(text: DecodedText, config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Return the lines, joined if the settings say so; else, if the format is auto, note a layout to warn about."""
    if config.join_lines:
        return map(Record, joined_lines(text.lines(), usual_width(text.head(_HEAD_CHARACTERS))))
    if config.format == "auto":
        layout, example = find_layout(text.head(_HEAD_CHARACTERS))
        if layout and not (layout == "words" and config.segmenter == "whitespace"):
            tally.layouts.setdefault(layout, example)
    return map(Record, text.lines())


def _read_wikiextractor(text: DecodedText, _config: TextConfig, _tally: Tally) -> Iterator[Record]:
    """Yield the lines of the articles, with the id, url and title of each article as columns."""
    columns = dict[str, str]()
    for line in text.lines():
        if line.startswith("<doc ") and line.endswith(">"):
            columns = _attributes(line)
        elif line != "</doc>":
            yield Record(html.unescape(without_variants(line)), columns)


def _attributes(tag: str) -> dict[str, str]:
    return {name: html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(tag)}


_TAG_LINE = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:\s[^<>]*)?)/?>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
# Elements at whose tags a sentence ends.
_BLOCKS = ("text", "doc", "article", "p", "div", "head", "s")
_ENDS = ("。", "！", "？", "!", "?")
_CONLLU_COLUMNS = 8
_LONGEST_TOKEN, _MEAN_TOKEN = 20, 4
_WORD_AND_TAG = re.compile(r"\[?(.+)[/_]([A-Za-z][A-Za-z0-9]{0,4})(?:\][A-Za-z]{1,5})?")
# A paragraph of the People's Daily corpus begins with its date and number; some characters carry readings in braces.
_NUMBER, _SOUND = re.compile(r"\d{8}-\d\d-\d{3}-\d{3}/m"), re.compile(r"(?<=[一-鿿])\{[a-z0-9]+\}")


def _token_of(line: str) -> str:
    """Return the token on a line of a vertical file; "" for comments, multiword tokens and empty nodes (CoNLL-U)."""
    cells = line.split("\t")
    if _is_comment(line):
        return ""
    if len(cells) >= _CONLLU_COLUMNS and cells[0][:1].isdecimal():
        return cells[1] if cells[0].isdecimal() else ""
    return cells[0].strip()


def _is_comment(line: str) -> bool:
    return line.startswith("# ") and "\t" not in line


def _read_vertical(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield each sentence of a vertical file; the attributes of elements around it are columns such as text_year."""
    elements: list[tuple[str, dict[str, str]]] = []
    tokens: list[str] = []

    def sentence() -> Iterator[Record]:
        if tokens:
            columns = {f"{name}_{key}": value for name, values in elements for key, value in values.items()}
            yield Record(" ".join(tokens), columns)
            tokens.clear()

    for line in text.whole_lines():
        tag = _TAG_LINE.fullmatch(line.strip())
        token = "" if tag else _token_of(line)
        tally.drop("vertical: columns and tags", len(line) - len(token), items=0)
        if tag[2] in _BLOCKS if tag else not line.strip():
            yield from sentence()
        if tag and tag[1]:
            while elements and elements.pop()[0] != tag[2]:
                pass
        elif tag and not line.rstrip().endswith("/>"):
            elements.append((tag[2], _attributes(tag[3])))
        elif token:
            tokens.append(html.unescape(token))
            if token in _ENDS and all(name != "s" for name, _values in elements):
                yield from sentence()
    yield from sentence()


def _starts_as_vertical(head: str) -> bool:
    """Return whether the first lines are short tokens, tags and comments, with end tags, or columns and blank lines."""
    lines = _sample(head)
    others = [line for line in lines if line.strip() and not (_TAG_LINE.fullmatch(line.strip()) or _is_comment(line))]
    has_tags = any(line.startswith("</") for line in lines)
    num_columns = {line.count("\t") + 1 for line in others}
    if len(others) < 3 or not (has_tags or (min(num_columns) > 1 and "" in lines)):
        return False
    tokens = list(map(_token_of, others))
    is_short = all(len(token) <= _LONGEST_TOKEN and " " not in token for token in tokens)
    return len(num_columns) <= 2 and is_short and sum(map(len, tokens)) <= _MEAN_TOKEN * len(tokens)


def _read_tagged(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield the words of each line without their tags."""
    for line in text.whole_lines():
        matches = [(item, _WORD_AND_TAG.fullmatch(item)) for item in line.split() if not _NUMBER.fullmatch(item)]
        words = " ".join(_SOUND.sub("", match[1]) if match else item for item, match in matches)
        tally.drop("tagged: tags of words", max(0, len(line) - len(words)), items=0)
        yield Record(words)


def _starts_as_tagged(head: str) -> bool:
    """Return whether nearly all items between spaces are words with tags."""
    items = [item for line in _sample(head) for item in line.split()]
    return len(items) >= 5 and sum(1 for item in items if _WORD_AND_TAG.fullmatch(item)) >= 0.9 * len(items)


def _sample(head: str) -> list[str]:
    lines = head.split("\n")
    return [line.rstrip("\r") for line in (lines[:-1] if len(lines) > 1 else lines)[:_MOST_LINES]]


_CUE = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}\s*-->.*")
_LYRIC = re.compile(r"(?:\[\d{1,3}:\d{2}(?:[.:]\d{1,3})?\])+|\[[a-z]{2,7}:[^\]]*\]")
_STYLE = re.compile(r"\{\\[^{}]*\}|</?(?:[ibuc]|font|ruby|rt|v|lang)\b[^<>]*>|<\d[\d:.]*>")
_DIALOGUE = re.compile(r"Dialogue:(?:[^,]*,){9}(.*)")
_ASS = re.compile(r"\s*\[Script Info\]", re.IGNORECASE)


def _read_subtitles(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield each line that subtitles (SRT, WebVTT, ASS) or lyrics (LRC) show, without time codes and styles."""
    is_ass = bool(_ASS.match(text.head(2**10)))
    is_text = False
    for line in text.whole_lines():
        lines: list[str] = []
        is_cue = bool(_CUE.fullmatch(line))
        if is_ass:
            match = _DIALOGUE.match(line)
            lines = re.split(r"\\[Nn]", match[1]) if match else []
        elif _LYRIC.match(line):
            lines = [_LYRIC.sub("", line)]
        elif is_text and not is_cue:
            lines = [line]
        is_text = is_cue or (is_text and bool(line.strip()))
        lines = list(filter(None, (_STYLE.sub("", shown).strip() for shown in lines)))
        tally.drop("subtitles: time codes and styles", max(0, len(line) - sum(map(len, lines))), items=0)
        yield from map(Record, lines)


def _starts_as_subtitles(head: str) -> bool:
    """Return whether the first lines have a cue's times, the header of ASS, or the times of lyrics."""
    lines = [line.strip("\r\ufeff") for line in head.split("\n")[:40] if line.strip()]
    num_lyrics = sum(1 for line in lines if _LYRIC.match(line))
    return (
        bool(_ASS.match(head))
        or any(_CUE.fullmatch(line) for line in lines[:6])
        or (len(lines) > 2 and num_lyrics >= 0.8 * len(lines))
    )


TEXT = CorpusFormat(read=read_plain, has_fields=False, suffixes=(".txt", ".text"))
WIKIEXTRACTOR = CorpusFormat(read=_read_wikiextractor, starts=lambda head: bool(_ARTICLE.match(head)))
VERTICAL = CorpusFormat(
    read=_read_vertical,
    has_fields=False,
    suffixes=(".vrt", ".vert"),
    starts=_starts_as_vertical,
    is_in_text_files=True,
)
TAGGED = CorpusFormat(
    read=_read_tagged,
    has_fields=False,
    starts=_starts_as_tagged,
    is_in_text_files=True,
)
SUBTITLES = CorpusFormat(
    read=_read_subtitles,
    has_fields=False,
    suffixes=(".srt", ".vtt", ".ass", ".ssa", ".lrc"),
    starts=_starts_as_subtitles,
    is_in_text_files=True,
)
