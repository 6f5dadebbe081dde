"""What a query matches, beside a search that tries every pair of tokens; and conditions on columns."""

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from messages import Heard

from elmo_zh.concordance.kwic import note_longer_words
from elmo_zh.concordance.query import (
    Query,
    TokenTable,
    find_matches,
    may_match,
    parse_keys,
    wanted_lines,
)
from elmo_zh.contexts.index_files import Column, ColumnBuilder, IndexedLine, note_type, require_column
from elmo_zh.errors import ConfigError


def table_of(lines: Sequence[Sequence[str]], columns: Sequence[dict[str, str]] | None = None) -> TokenTable:
    """The table of lines of tokens, which the text of a line separates by nothing."""
    spellings = sorted({token for line in lines for token in line})
    builder = ColumnBuilder()
    spans = []
    for number, line in enumerate(lines):
        builder.add({"source": f"{number % 3}.txt", **(columns[number] if columns else {})})
        ends = np.cumsum([len(token) for token in line], dtype=np.int32)
        spans.append(np.stack([ends - [len(token) for token in line], ends], axis=1).astype(np.int32).reshape(-1, 2))
    return TokenTable(
        spellings=spellings,
        words=np.array([spellings.index(token) for line in lines for token in line], np.int32),
        spans=np.concatenate(spans),
        ends=np.cumsum([len(line) for line in lines]),
        columns=builder.columns(),
        line=lambda number: IndexedLine("".join(lines[number]), f"{number % 3}.txt", number),
    )


def brute_matches(lines: Sequence[Sequence[str]], query: str) -> list[tuple[int, int]]:
    """Leftmost longest runs of tokens of one line that are the query: an independent reading of the rules."""
    found, first_of_line = [], 0
    for line in lines:
        place = 0
        while place < len(line):
            fitting = [end for end in range(place + 1, len(line) + 1) if _is(line[place:end], query.split())]
            if fitting:
                found.append((first_of_line + place, first_of_line + fitting[0]))
            place = fitting[0] if fitting else place + 1
        first_of_line += len(line)
    return found


def _is(tokens: Sequence[str], elements: Sequence[str]) -> bool:
    """Whether tokens can be divided so that each part is an element: * and ? never reach beyond a token."""
    if not elements:
        return not tokens
    if set(elements[0]) <= {"*"}:
        return bool(tokens) and _is(tokens[1:], elements[1:])
    return any(
        _fits(tokens[:size], elements[0]) and _is(tokens[size:], elements[1:]) for size in range(1, len(tokens) + 1)
    )


def _fits(tokens: Sequence[str], element: str) -> bool:
    if not set("*?") & set(element):
        return "".join(tokens) == element
    joined = "|".join(tokens)  # no token has a bar
    expression = ""
    for before, character in zip(" " + element, element, strict=False):
        gap = r"\|?" if before not in " *?" and character not in "*?" else ""
        expression += gap + {"*": "[^|]*", "?": "[^|]"}.get(character, re.escape(character))
    return re.fullmatch(expression, joined) is not None


def test_matches_are_those_of_a_plain_search() -> None:
    draw = random.Random(3)
    tokens = ["高", "质", "量", "高质", "质量", "高质量", "发", "展", "发展", "，"]
    lines = [draw.choices(tokens, k=draw.randrange(8)) for _ in range(150)]
    table = table_of(lines)
    queries = ["高", "高质量", "质量 发展", "高 * 发", "高*", "*量", "高?", "质 ?展", "发展 高质量 ，", "* ，", "量高"]
    queries += ["*质*展", "高**发 *", "?*", "* *量 *", "质量发*", "*质?"]
    for query in queries:
        first, end = find_matches(table, Query(query))
        assert list(zip(first.tolist(), end.tolist(), strict=True)) == brute_matches(lines, query), query
        wanted = may_match([query], str)
        for line in lines:
            assert wanted("".join(line)) or not brute_matches([line], query)


def test_a_query_is_folded_like_the_tokens() -> None:
    table = table_of([["頭髮", "長"], ["头发", "长"]])
    fold = {"頭髮": "头发", "長": "长"}
    folded = table.folded(lambda line: "".join(fold.get(part, part) for part in re.findall("頭髮|長|.", line)))
    first, end = find_matches(folded, Query("头发 长"))
    assert (first.tolist(), end.tolist()) == ([0, 2], [2, 4])


def test_many_wildcards_take_time_in_proportion_to_a_token() -> None:
    """A search that goes back would try billions of divisions of this token."""
    table = table_of([["a" * 5000, "a" * 4999 + "b"]])
    assert [places.tolist() for places in find_matches(table, Query("*a*a*a*a*a*b"))] == [[1], [2]]


ROWS = [
    {"year": "1999", "author": "鲁迅", "日期": "2020/3/5", "share": "5%", 'a "b"': "x"},
    {"year": "2020", "日期": "2020-10-20", "share": "１，２００％"},
    {"year": "2020.5", "author": "lu xun", "日期": "2021年3月", "share": "0.3"},
    {"year": "n/a", "日期": "待定", "share": "-2"},
    {"日期": "20211231"},
]


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        (None, [0, 1, 2, 3, 4]),
        ("year >= 2020", [1, 2]),
        ("year!=2020", [0, 2]),
        ("year = n/a", [3]),
        ("author = 'lu xun' and year>2000", [2]),
        ("author = lu xun and year>2000", [2]),
        ("author ~ 鲁|xun", [0, 2]),
        ("source = 1.txt", [1, 4]),
        ("author = ''", [1, 3, 4]),
        ("日期 <= 2021-12-31", [0, 1, 2, 4]),
        ("日期 < 2021", [0, 1]),
        ("日期 > 2020", [2, 4]),
        ("日期 >= 2020Q4", [1, 2, 4]),
        ("日期 = 2020年", [0, 1]),
        ("日期 != 2020", [2, 4]),
        ("日期 = 待定", [3]),
        ("日期:year = 2020 and 日期：month != 2020-10", [0]),
        ("author != 'this or that' and year > 2020", [2]),
        ("share > 4%", [0, 1, 2]),
        ("share <= 12", [0, 1, 2, 3]),
        ('''"a ""b""" = x and "日期" ~ 3''', [0]),
    ],
)
def test_conditions(condition: str | None, lines: list[int]) -> None:
    table = table_of([["一"]] * 5, ROWS)
    assert np.flatnonzero(wanted_lines(table.columns, 5, condition)).tolist() == lines


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("yaer > 3", "no column yaer. Their columns are: "),
        ("year >", "cannot read"),
        ("author ~ (", "position 0"),
        ("year = 2019 or year = 2020", "cannot read 'year = 2019 or year = 2020'"),
        ("author:year = 2020", "--where author:year; expected dates."),
        ("number >= soon", "number >= 'soon'; expected numbers"),
        ("日期 >= 1998-13-45", "日期 >= '1998-13-45'; expected dates"),
    ],
)
def test_wrong_conditions_are_one_line(condition: str, message: str) -> None:
    table = table_of([["一"]] * 5, [{**row, "number": str(place)} for place, row in enumerate(ROWS)])
    with pytest.raises(ConfigError, match=re.escape(message)):
        wanted_lines(table.columns, 5, condition)


def test_dates_are_grouped_and_cells_that_are_none_are_counted() -> None:
    cells = ["2020/3/7", "3月7日", "", "不详", "2020/13/45", "2020年12月", "2019-01-01", "2019", "2020-03-31", " "]
    columns = table_of([["一"]] * 10, [{"日期": cell} for cell in cells]).columns
    for unit, expected in (
        ("year", ["2020", "", "", "", "", "2020", "2019", "2019", "2020", ""]),
        ("month", ["2020-03", "", "", "", "", "2020-12", "2019-01", "", "2020-03", ""]),
    ):
        grouped = require_column(columns, f"日期:{unit}", "--by")
        assert [grouped.values[code] for code in grouped.codes.tolist()] == expected
    heard = Heard()
    note_type(columns, "日期:year", heard)
    assert heard.notes == ["日期: compared as dates; cells of another type: 3 ('3月7日')"]
    assert _in_order(columns["日期"])[:4] == ["", " ", "2019", "2019-01-01"]


def test_months_and_quarters_without_a_year_are_dates_among_themselves() -> None:
    for cells in (["3月", "10月", "12月"], ["Q1", "第三季度", "Q4"]):
        rows = [{"when": cell} for cell in reversed(cells)]
        assert _in_order(table_of([["一"]] * 3, rows).columns["when"])[-3:] == cells
    mixed = [{"when": cell} for cell in ("3月", "2020-03-07", "2021-03-07")]
    assert table_of([["一"]] * 3, mixed).columns["when"].type.num_others == 1


def test_cells_that_say_that_there_is_no_value_do_not_decide_the_type() -> None:
    rows = [{"when": cell} for cell in ("2020/3/7", "不详", "N/A", "未知")]
    kind = table_of([["一"]] * 4, rows).columns["when"].type
    assert (kind.name, kind.num_others, kind.example) == ("dates", 3, "不详")


def _in_order(column: Column) -> list[str]:
    ranked = zip(column.ranks().tolist(), column.values, strict=True)
    return [value for _, value in sorted(ranked)]


def test_keys_may_name_columns_with_any_character() -> None:
    assert parse_keys("""-1R, "a,b" ,-'c d', Post Date,""") == ["-1R", "a,b", "-c d", "Post Date"]


def test_an_empty_query_is_refused() -> None:
    with pytest.raises(ConfigError, match='QUERY ""; expected a word'):
        Query("  ")


def test_a_word_inside_longer_words_is_counted() -> None:
    table = table_of([["有意思", "的", "意思"], ["没意思", "意", "思"], ["小意思", "意思意思"]])
    heard = Heard()
    note_longer_words(table, "意思", heard)
    note_longer_words(table, "意思", heard, np.array([True, False, True]))
    for word in ("的", "*意思", "有 意思"):
        note_longer_words(table, word, heard)
    assert [re.search(r"[0-9]+", note)[0] for note in heard.notes] == ["4", "3"]  # type: ignore[index]
