"""Which column or field of a file's first records holds the text, which one the label, and which row names them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from elmo_zh.text.han import count_han

# Names of columns, in order of preference, in lower case.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review", "context",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
    "评论内容", "評論內容", "评价内容", "評價內容",
)  # fmt: skip
# Texts of labelled data may be shorter.
TEXT_NAMES = (*KNOWN_NAMES, "comment", "title", "query", "question", "标题", "標題", "问题", "問題")
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "score", "rating", "star", "stars", "similarity",
    "tag", "gold_label", "label_desc", "标签", "標籤", "类别", "類別", "分类", "分類", "情感", "情感倾向", "评分",
    "得分", "分数", "相似度",
)  # fmt: skip
PAIR_NAMES = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b"),
    ("question1", "question2"), ("query1", "query2"), ("q1", "q2"), ("s1", "s2"), ("premise", "hypothesis"),
    ("question", "answer"), ("query", "title"), ("query", "doc"), ("句子1", "句子2"), ("问题", "答案"),
)  # fmt: skip
# Columns that number the rows: never a text or a label.
_NUMBERING = re.compile(r".*id\d*|idx|index|序号|编号")
# A known name is passed over if another known name has more than twice its Han characters, or any other field more than
# four times: it then holds numbers, captions or answers beside the text.
_MOST_TIMES_KNOWN, _MOST_TIMES_ANY = 2, 4
# Least fraction of a sample's Han characters in the column that is taken as the text.
_LEAST_FRACTION = 0.8
# A first row whose label never comes again, where every other label does in at least so many rows, names the columns.
_LEAST_ROWS = 20
# Columns with more empty cells, or fewer distinct ones, are texts only if there are no others.
_MOST_EMPTY, _LEAST_DISTINCT = 0.2, 0.1

Rows = Sequence[Sequence[str]]


def is_number(cell: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def cells_of(rows: Rows, column: int) -> list[str]:
    """Return the cells of a column, without those of rows that are too short."""
    return [row[column].strip() for row in rows if column < len(row)]


def num_han_of(rows: Rows, column: int) -> int:
    """Return the number of Han characters in a column."""
    return count_han(cells_of(rows, column))


def known_field(num_han: Mapping[str, int]) -> str | None:
    """Return the field whose last key is a known name and that has about as much text as any other field, else None.

    The outermost comes first, then the first of the known names, then the one spelled exactly like it.
    """
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


def text_column(sample: Rows) -> tuple[int | None, bool]:
    """Return the column that certainly holds the text, None if none does, and whether the first row names columns."""
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


def has_header(sample: Rows, *, text: int | None = None, label: int | None = None) -> bool:
    """Return whether the first row certainly names the columns.

    It does if its label is no number and all others are, or comes once and all others again; if its text has no Han
    characters and all others have; or if any column but the text has only numbers below a cell that is no number.
    """
    first, rest = sample[0], sample[1:]
    if label is not None:
        return _is_no_label(first[label].strip() if label < len(first) else "", cells_of(rest, label))
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
    """Return the known names of two texts among names in lower case; None if there are none."""
    return next((pair for pair in PAIR_NAMES if set(pair) <= set(header)), None)


def known_columns(sample: Rows, num_texts: int, *, with_label: bool) -> tuple[int | None, ...] | None:
    """Return the columns of the texts and the label by their names in the first row; None if none of these is known.

    Beside a known label the texts are the other columns with the most Chinese; beside known texts a single other column
    is the label if it may be one. Columns that number the rows are neither.
    """
    header = [cell.strip().lower() for cell in sample[0]]
    label = next((header.index(name) for name in LABEL_NAMES if name in header), None)
    pair = pair_in(header)
    if num_texts == 2:
        texts: tuple[int | None, ...] = tuple(map(header.index, pair)) if pair else (None, None)
    else:
        single = (*TEXT_NAMES, *(first for first, second in PAIR_NAMES if second not in header))
        texts = (next((header.index(name) for name in single if name in header), None),)
    if label is None and pair is None and None in texts:
        return None
    others = [place for place, name in enumerate(header) if not _NUMBERING.fullmatch(name)]
    others = [place for place in others if place != label and place not in texts]
    if label is not None and None in texts and len(others) >= num_texts and not (pair and num_texts == 1):
        texts = _texts_among(sample[1:], others, num_texts)
    if label is None and with_label and None not in texts and len(others) == 1 and _may_be_label(sample[1:], others[0]):
        label = others[0]
    return (*texts, label)


def guessed_columns(sample: Rows, num_texts: int, *, with_label: bool) -> tuple[int | None, ...] | None:
    """Return the columns of a table without known names: texts have the most Chinese, labels come again."""
    width = max(map(len, sample))
    if width < num_texts + with_label:
        return None
    texts = _texts_among(sample, range(width), num_texts)
    left = [column for column in range(width) if column not in texts]
    return (*texts, min(left, key=lambda column: _label_rank(cells_of(sample, column))) if left else None)


def _may_be_label(rows: Rows, column: int) -> bool:
    """Return whether the cells of a column are numbers, or at most half as many labels as there are rows."""
    cells = cells_of(rows, column)
    few = len(cells) < _LEAST_ROWS or 2 * len(set(cells)) <= len(cells)
    return all(cells) and (few or all(map(is_number, cells)))


def _texts_among(rows: Rows, columns: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the columns with the most Chinese, else the longest; those that are often empty or alike come last."""

    def rank(column: int) -> tuple[bool, bool, int, int, int]:
        cells = cells_of(rows, column)
        is_empty = cells.count("") > _MOST_EMPTY * len(cells)
        is_alike = len(cells) >= _LEAST_ROWS and len(set(cells)) < _LEAST_DISTINCT * len(cells)
        return is_empty, is_alike, -count_han(cells), -sum(map(len, cells)), column

    return tuple(sorted(sorted(columns, key=rank)[:count]))


def _label_rank(cells: Sequence[str]) -> tuple[bool, int, int]:
    """Return what is lowest for labels: none is empty; values that come again, but several; few of them."""
    distinct = len(set(cells))
    comes_again = 2 * distinct <= len(cells)
    return not all(cells), 0 if comes_again and distinct > 1 else 1 if comes_again else 2, distinct
