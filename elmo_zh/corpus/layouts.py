"""Name the layout of plain text that would silently become wrong words, with the option or conversion that helps."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from elmo_zh.corpus.lines import usual_width
from elmo_zh.corpus.readers.rows import starts_as_objects
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.han import HAN

# The names are keys of records.
LAYOUTS = {
    "hard line breaks": N_(
        "{names}: most lines end inside a sentence, so that its words are cut. To join such lines, add:"
        " --set text.join_lines=true"
    ),
    "time codes": N_("{names}: lines begin with time codes, which are read as words. Remove them."),
    "markup": N_("{names}: the text has markup that is read as words. Convert it to plain text or HTML."),
    "columns": N_(
        "{names}: the lines have columns, all of which are read. To choose one, add: --input-format {example} --field 2"
    ),
    "format": N_("{names}: the text looks like {example}, which is read as words. Add: --input-format {example}"),
    "line starts": N_(
        "{names}: each line begins with a short field (such as {example}), which is read as text. Remove it, or put a"
        " tab after it and add: --input-format tsv --field 2"
    ),
    "words": N_("{names}: words are already separated by spaces. To keep them, add: --set text.segmenter=whitespace"),
}
_LEAST_LINES, _MOST_LINES = 4, 200
_SENTENCE_END = re.compile(r"[。！？!?…；;：:”’」』）)》\"]\s*$")
_TIME = re.compile(r"\s*[\[(（【<]?(?:\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?[ T]*)?\d{1,2}[:：]\d{2}(?:[:：]\d{2})?")
_HTML = re.compile(r"\s*<(?:!doctype html|html[\s>])", re.IGNORECASE)
_MARKUP = re.compile(r"\s*(?:<\?xml|<TEI|<!DOCTYPE|\\documentclass|\\begin\{)")
_XML_LINE = re.compile(r"\s*</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?>|.*?<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>[^<>]*</\1>")
_SEPARATORS = ("\t", "：", ":", "|", ",", " ", "、", ".")
_LONGEST_FIELD = 20


def find_layout(head: str) -> tuple[str, str]:
    """Return the name of a layout that the start of a plain text shows, and an example; empty if it is prose."""
    lines = head.split("\n")
    lines = [line for line in (lines[:-1] if len(lines) > 1 else lines)[:_MOST_LINES] if line.strip()]
    if _HTML.match(head):
        return "format", "html"
    if starts_as_objects(head):
        return "format", "jsonl"
    if _MARKUP.match(head) or _share(lines, _XML_LINE) > 0.5:
        return "markup", ""
    if len(lines) < _LEAST_LINES:
        return "", ""
    if _share(lines, _TIME) > 0.4:
        return "time codes", ""
    for separator, kind in (("\t", "tsv"), (",", "csv")):
        if lines[0].count(separator) and len({line.count(separator) for line in lines}) == 1:
            return "columns", kind
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
    """Return an example of the field at the start of nearly all lines: a label, a speaker or a number."""
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
    """Return whether most lines end inside a sentence, and nearly as long as the longest one."""
    all_lines = [line.strip() for line in head.split("\n")][:_MOST_LINES]
    open_lines = [
        line
        for line, following in pairwise(all_lines)
        if following and HAN.search(line) and not _SENTENCE_END.search(line)
    ]
    width = usual_width(head)
    num_full = sum(1 for line in open_lines if 0.8 * width <= len(line) <= 1.25 * width)
    return 10 <= width <= 100 and len(open_lines) >= 0.5 * len(lines) and num_full >= 0.8 * len(open_lines)
