"""Find a file's text and label columns or fields from its first records, and decide whether the first row has names."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.script import count_han

# Names of columns, in order of preference, in lower case.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review", "context",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
    "评论内容", "評論內容", "评价内容", "評價內容",
)  # fmt: skip
# Texts in labelled data may be shorter, such as titles.
TEXT_NAMES = (*KNOWN_NAMES, "comment", "title", "query", "question", "标题", "標題", "问题", "問題")
# Names of label columns: certain ones, ones that may also stand beside a label, and things that are often labelled.
_RANKED_LABEL_NAMES = (
    ("label", "labels", "gold_label", "标签", "標籤"),
    ("class", "category", "target", "tag", "类别", "類別", "分类", "分類"),
    (
        "sentiment", "score", "rating", "star", "stars", "similarity", "intent", "department", "topic", "label_desc",
        "情感", "情感倾向", "评分", "得分", "分数", "相似度", "科室", "部门", "案由", "意图", "主题",
    ),
)  # fmt: skip
LABEL_NAMES = tuple(chain.from_iterable(_RANKED_LABEL_NAMES))
PAIR_NAMES = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b"),
    ("question1", "question2"), ("query1", "query2"), ("q1", "q2"), ("s1", "s2"), ("premise", "hypothesis"),
    ("question", "answer"), ("query", "title"), ("query", "doc"), ("句子1", "句子2"), ("问题", "答案"),
)  # fmt: skip
# Words that name the parts of labelled data, in file names and in a column; testa and testb are from CoNLL.
PART_WORDS = {
    N_("train"): {"train", "training", "trainset"},
    N_("dev"): {"dev", "devel", "devset", "val", "valid", "validation", "valset", "validset", "eval", "testa"},
    N_("test"): {"test", "testing", "testset", "testb"},
}
# Columns that number the rows: never a text or a label.
_NUMBERING = re.compile(r".*id\d*|idx|index|.*(?:序号|编号|案号|单号|病历号|号码)")
# Dates are never labels. Dates, numbers and identifiers are never texts.
_DATE = re.compile(r"\d{2,4}[-/.年]\d{1,2}(?:[-/.月]\d{1,2})?日?(?:[T ]?\d{1,2}:\d{2}.*)?")
_NO_TEXT = re.compile(r"(?:[\W\d_]|[年月日时分秒])*|(?=.*\d)[!-~]+")
# A field with a known name is passed over if another such field has more than twice its Han characters, or any other
# field more than four times: it then holds numbers, captions or answers beside the text.
_MOST_TIMES_KNOWN, _MOST_TIMES_ANY = 2, 4
# A column is taken as the text if it has at least this fraction of a sample's Han characters.
_LEAST_FRACTION = 0.8
# The first row names the columns if its label never recurs and every other label does, in at least this many rows.
_LEAST_ROWS = 20
# Columns with a larger fraction of empty cells, or a smaller one of distinct cells, are texts only as a last resort.
_MOST_EMPTY, _LEAST_DISTINCT = 0.2, 0.1

Sample = Sequence[Sequence[str]]


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; unlike in Python, underscores as in 1_0 are not allowed."""
    try:
        return "_" not in cell and math.isfinite(float(cell))
    except ValueError:
        return False


def shown_names(names: Sequence[str]) -> str:
    """Join the first ten names of columns or fields on one line, each truncated to 20 characters."""
    return first_ten([" ".join(name.split())[:20] for name in names])


def no_column(name: str, column: str, header: Sequence[str]) -> CorpusError:
    """Return the error for a column or field that a file lacks; `header` is the file's first row, or its fields."""
    return CorpusError(
        _(
            "{name} has no column or field {column}. Its first row, or its fields: {row}. Use one of these names, or a"
            " number, counting from 1."
        ).format(name=name, column=repr(column), row=shown_names(header))
    )


def cells_in(rows: Sample, column: int) -> list[str]:
    """Return a column's cells, stripped; rows that are too short are skipped."""
    return [row[column].strip() for row in rows if column < len(row)]


def num_han_of(rows: Sample, column: int) -> int:
    """Return the number of Han characters in a column."""
    return count_han(cells_in(rows, column))


def known_field(num_han: Mapping[str, int]) -> str | None:
    """Return the outermost field with a known name and not much less Chinese than any other, or None."""
    known = [path for path in num_han if _last_key(path) in KNOWN_NAMES]
    most_known = max((num_han[path] for path in known), default=0)
    most = max(num_han.values(), default=0)
    large = [
        path
        for path in known
        if num_han[path] * _MOST_TIMES_KNOWN >= most_known and num_han[path] * _MOST_TIMES_ANY >= most
    ]
    return min(large, key=_preference, default=None)


def _last_key(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _preference(path: str) -> tuple[int, int, bool, str]:
    return path.count("."), KNOWN_NAMES.index(_last_key(path)), path != path.lower(), path


def text_column(sample: Sample) -> tuple[int | None, bool]:
    """Return the column that clearly holds the text, or None, and whether the first row names the columns."""
    header = [cell.strip() for cell in sample[0]]
    if name := known_field({name: num_han_of(sample[1:], header.index(name)) for name in header}):
        return header.index(name), True
    counts = [num_han_of(sample, number) for number in range(max(map(len, sample)))]
    if len(counts) < 2:
        return 0, has_header(sample, text=0)
    most = max(counts)
    if not most or most < _LEAST_FRACTION * sum(counts):
        return None, False
    column = counts.index(most)
    return column, has_header(sample, text=column)


def has_header(sample: Sample, *, text: int | None = None, label: int | None = None) -> bool:
    """Return whether the first row clearly names the columns, judging by how it differs from the rest of the sample."""
    first, rest = sample[0], sample[1:]
    if label is not None:
        return _is_no_label(first[label].strip() if label < len(first) else "", cells_in(rest, label))
    texts = [row for row in rest if text is not None and text < len(row)]
    if text is None or text >= len(first) or not texts:
        return False
    if not count_han([first[text]]) and all(count_han([row[text]]) for row in texts):
        return True
    return any(
        first[place].strip()
        and not is_number(first[place])
        and all(place < len(row) and is_number(row[place]) for row in rest)
        for place in range(len(first))
        if place != text
    )


def _is_no_label(first: str, others: Sequence[str]) -> bool:
    if not first:
        return False
    if all(map(is_number, others)):
        return not is_number(first)
    counts = Counter(others)
    return len(others) >= _LEAST_ROWS and not counts[first] and min(counts.values()) > 1


def pair_in(header: Sequence[str]) -> tuple[str, str] | None:
    """Return the first known pair of names for two text columns in a lower-case header, or None."""
    return next((pair for pair in PAIR_NAMES if set(pair) <= set(header)), None)


class Columns(NamedTuple):
    """The columns of the texts (None if unknown), the candidates for the label, and whether columns have names."""

    texts: tuple[int | None, ...]
    labels: tuple[int, ...]
    has_names: bool


def find_columns(sample: Sample, num_texts: int, *, with_label: bool, numbers: bool, is_table: bool) -> Columns:
    """Find text and label columns by the names in the first row, then by content.

    By content, the columns with the most Chinese are texts, and those with numbers or repeated values may be labels.
    """
    header = [cell.strip().lower() for cell in sample[0]]
    labels, pair = _named_labels(sample[1:], header, numbers=numbers), pair_in(header)
    if num_texts == 2:
        texts: tuple[int | None, ...] = tuple(map(header.index, pair)) if pair else (None, None)
    else:
        single = (*TEXT_NAMES, *(first for first, second in PAIR_NAMES if second not in header))
        texts = (next((header.index(name) for name in single if name in header), None),)
    has_names = not is_table or bool(labels or pair) or None not in texts
    rows = sample[1:] if has_names else sample[1:] or sample
    names = header if has_names else [""] * max(map(len, sample))
    others = [place for place, name in enumerate(names) if place not in labels and not _NUMBERING.fullmatch(name)]
    if None in texts and (labels or not has_names) and not (pair and num_texts == 1):
        texts = _texts_among(rows, [place for place in others if place not in texts], num_texts) or texts
    if not labels and with_label and None not in texts:
        labels = _likely_labels(rows, [place for place in others if place not in texts], numbers=numbers)
    return Columns(texts, labels, has_names)


def _named_labels(rows: Sample, header: Sequence[str], *, numbers: bool) -> tuple[int, ...]:
    """Return the likely labels among the columns with the clearest label names, or the first of these; () if none."""
    ranked = [tuple(header.index(name) for name in names if name in header) for names in _RANKED_LABEL_NAMES]
    if numbers:
        ranked.sort(key=lambda found: not any(_are_numbers(cells_in(rows, column)) for column in found))
    return next((_likely_labels(rows, found, numbers=numbers) or found[:1] for found in ranked if found), ())


def _likely_labels(rows: Sample, columns: Sequence[int], *, numbers: bool) -> tuple[int, ...]:
    """Return the columns that may be labels; if several, prefer repeated values or, with `numbers`, numeric ones."""
    cells = {column: cells_in(rows, column) for column in columns}
    found = {column: each for column, each in cells.items() if _may_be_label(each)}
    if len(found) > 1:
        fits = _are_numbers if numbers else _come_again
        found = {column: each for column, each in found.items() if fits(each)} or found
    return tuple(sorted(found))


def _may_be_label(cells: Sequence[str]) -> bool:
    """Return whether cells may be labels: seldom empty, not dates or part names and, if many, repeated or numeric."""
    filled = [cell for cell in cells if cell]
    distinct = set(filled)
    if len(filled) < (1 - _MOST_EMPTY) * len(cells) or all(map(_DATE.fullmatch, distinct)):
        return False
    if all(part_named(cell.lower()) for cell in distinct):
        return False
    return len(cells) < _LEAST_ROWS or 2 * len(distinct) <= len(cells) or _are_numbers(filled)


def _come_again(cells: Sequence[str]) -> bool:
    return 1 < len(set(cells)) <= len(cells) / 2


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(is_number, filter(None, cells)))


def part_named(word: str) -> str:
    """Return the part of the data that a lower-case word names, or "" if it names none."""
    return next((part for part, words in PART_WORDS.items() if word in words), "")


def _texts_among(rows: Sample, columns: Sequence[int], count: int) -> tuple[int, ...] | None:
    """Return the `count` text columns with the most Chinese, from left to right; None if there are too few.

    Columns with many empty or repeated cells are chosen last.
    """

    def rank(column: int) -> tuple[bool, bool, int, int, int]:
        cells = cells_in(rows, column)
        is_empty = cells.count("") > _MOST_EMPTY * len(cells)
        is_alike = len(cells) >= _LEAST_ROWS and len(set(cells)) < _LEAST_DISTINCT * len(cells)
        return is_empty, is_alike, -count_han(cells), -sum(map(len, cells)), column

    texts = [column for column in columns if not rows or not all(map(_NO_TEXT.fullmatch, cells_in(rows, column)))]
    return tuple(sorted(sorted(texts, key=rank)[:count])) if len(texts) >= count else None
