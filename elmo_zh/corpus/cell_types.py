"""Decide from all cells whether a column holds numbers, dates or text, and compare and sort its values accordingly.

Cells stay strings wherever they are shown or written.
"""

import operator
import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple
from unicodedata import normalize

# Cells that stand for a missing value; they are ignored when the type is decided.
_NO_VALUE = frozenset(("", "-", "--", "—", "——", "/", "na", "n/a", "nan", "null", "none", "无", "不详", "未知"))
_NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[+-]?\.\d+)(e[+-]?\d{1,3})?(%?)", re.IGNORECASE)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ORDERING = ("<", "<=", ">", ">=")

_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_DAY = re.compile(
    rf"(\d{{4}})(?:-(\d{{1,2}})-(\d{{1,2}})|/(\d{{1,2}})/(\d{{1,2}})|\.(\d{{1,2}})\.(\d{{1,2}})"
    rf"|年(\d{{1,2}})月(\d{{1,2}})[日号]?|(\d{{2}})(\d{{2}})){_TIME}"
)
_MONTH = re.compile(r"(\d{4})(?:[-/.](\d{1,2})|年(\d{1,2})月?份?|(\d{2}))")
_YEAR = re.compile(r"(\d{4})年?度?")
_QUARTER = re.compile(r"(\d{4})年?[-/]?(?:Q([1-4])|第?([1-4一二三四])季度?)|Q([1-4])[-/ ]?(\d{4})", re.IGNORECASE)
# Without a year: a date only in a column of such months or quarters.
_PART_OF_YEAR = re.compile(
    r"(?:(\d{1,2})|([一二三四五六七八九十]|十[一二]))月份?(?:(\d{1,2})[日号])?|(?:Q([1-4])|第?([1-4一二三四])季度?)",
    re.IGNORECASE,
)
_DIGITS = "一二三四五六七八九"
# As Excel writes dates in American or European settings.
_DAY_FIRST = re.compile(rf"(\d{{1,2}})/(\d{{1,2}})/(\d{{4}}){_TIME}")
_SPACES = re.compile(r"\s+")
_LAST = (12, 31, 23, 59, 59)

Moment = tuple[int, ...]


class Period(NamedTuple):
    """The first and last second of a date, which may be a second, a minute, a day, a month, a quarter or a year."""

    first: Moment
    last: Moment


def as_number(cell: str) -> float | None:
    """Return the number that a cell consists of, or None.

    >>> [as_number(cell) for cell in ("1,234.5", "12%", "007", "3 apples")]
    [1234.5, 0.12, 7.0, None]
    """
    match = _NUMBER.fullmatch(_plain(cell))
    if match is None:
        return None
    number = float(match[1].replace(",", "") + (match[2] or ""))
    return number / 100 if match[3] else number


def _plain(cell: str) -> str:
    return normalize("NFKC", cell).strip().replace("\u2212", "-")


def as_date(cell: str, *, day_first: bool = False) -> Period | None:
    """Return the date that a cell consists of, or None; `day_first` reads 3/7/2020 as the third of July.

    >>> as_date("2020年3月").first[:3], as_date("2020Q1").last[:3]
    ((2020, 3, 1), (2020, 3, 31))
    """
    text = _SPACES.sub(" ", _plain(cell))
    if "年" in text:
        text = text.replace(" ", "")
    if match := _DAY.fullmatch(text):
        year, month, day = (number for number in match.groups()[:11] if number is not None)
        return _day(year, month, day, match.groups()[11:])
    if match := _DAY_FIRST.fullmatch(text):
        month, day = match.group(2, 1) if day_first else match.group(1, 2)
        return _day(match[3], month, day, match.groups()[3:])
    if match := _QUARTER.fullmatch(text):
        quarter = match[2] or match[4] or match[3]
        return _quarter(int(match[1] or match[5]), quarter)
    if match := _MONTH.fullmatch(text):
        month = int(match[2] or match[3] or match[4])
        return _months(int(match[1]), month, month)
    if (match := _YEAR.fullmatch(text)) and 1000 <= int(match[1]) < 3000:
        return _months(int(match[1]), 1, 12)
    return None


def _part_of_year(cell: str) -> Period | None:
    match = _PART_OF_YEAR.fullmatch(_plain(cell))
    if match is None:
        return None
    if quarter := match[4] or match[5]:
        return _quarter(0, quarter)
    month = int(match[1]) if match[1] else 10 * match[2].startswith("十") + _DIGITS.find(match[2][-1]) + 1
    days = (int(match[3]),) * 2 if match[3] else (1, 31)
    if not (1 <= month <= 12 and 1 <= days[0] <= 31):
        return None
    return Period((0, month, days[0], 0, 0, 0), (0, month, days[1], 23, 59, 59))


def _quarter(year: int, quarter: str) -> Period:
    number = _DIGITS.find(quarter) + 1 or int(quarter)
    return Period((year, 3 * number - 2, 1, 0, 0, 0), (year, 3 * number, 31 if number in (1, 4) else 30, 23, 59, 59))


def _day(year: str, month: str, day: str, time: Sequence[str | None]) -> Period | None:
    try:
        start_day = date(int(year), int(month), int(day))
    except ValueError:
        return None
    known = [int(part) for part in time if part is not None]
    # Excel adds midnight to dates without a time.
    if not any(known):
        known = []
    start = (start_day.year, start_day.month, start_day.day, *known)
    return Period(_filled(start, (1, 1, 0, 0, 0)), _filled(start, _LAST))


def _months(year: int, first: int, last: int) -> Period | None:
    if not (1 <= first <= last <= 12 and 1000 <= year < 3000):
        return None
    end = (date(year + last // 12, last % 12 + 1, 1) - date(year, last, 1)).days
    return Period((year, first, 1, 0, 0, 0), (year, last, end, 23, 59, 59))


def _filled(start: Moment, rest: Moment) -> Moment:
    return start + rest[len(start) - 1 :]


class ColumnType(NamedTuple):
    """The type of a column ("numbers", "dates" or "text"), its parser, and how many filled cells the parser rejects."""

    name: str
    parse: Callable[[str], Any]
    num_others: int = 0
    example: str = ""


def column_type(cells: Sequence[tuple[str, int]], *, wants_dates: bool = False) -> ColumnType:
    """Return the type that more than half of the cells with a value have, or text; cells are distinct, with counts.

    Numbers that may be dates, such as 2020 or 20200307, count as dates if all of them are eight-digit days, if more
    cells can be dates than numbers, or if `wants_dates` is set.
    """
    filled = [(cell, count) for cell, count in cells if cell.strip()]
    valued = [(cell, count) for cell, count in filled if cell.strip().lower() not in _NO_VALUE]
    numbers = _type("numbers", as_number, filled)
    kinds_of_dates = (as_date, partial(as_date, day_first=True), _part_of_year)
    dates = min((_type("dates", parse, filled) for parse in kinds_of_dates), key=operator.attrgetter("num_others"))
    are_days = all(len(_plain(cell)) >= 8 for cell, _ in valued)
    if _has_most(dates, filled, valued) and (dates.num_others < numbers.num_others or are_days or wants_dates):
        return dates
    return numbers if _has_most(numbers, filled, valued) else ColumnType("text", str)


def _has_most(kind: ColumnType, filled: Sequence[tuple[str, int]], valued: Sequence[tuple[str, int]]) -> bool:
    num_filled, num_valued = (sum(count for _, count in cells) for cells in (filled, valued))
    return 2 * (num_filled - kind.num_others) > num_valued


def _type(name: str, parse: Callable[[str], Any], filled: Sequence[tuple[str, int]]) -> ColumnType:
    others = [(cell, count) for cell, count in filled if parse(cell) is None]
    return ColumnType(name, parse, sum(count for _, count in others), others[0][0] if others else "")


def sort_key(value: object) -> Any:
    """Return what a parsed value is sorted by; of two dates with the same start, the longer one comes first."""
    if isinstance(value, Period):
        return value.first, tuple(-part for part in value.last)
    return value


def longer_period(value: object, unit: str) -> str:
    """Return the "year" or "month" that contains a parsed date, such as 2020 or 2020-03; "" if none does.

    >>> longer_period(as_date("2020/3/7"), "month"), longer_period(as_date("2020"), "month")
    ('2020-03', '')
    """
    size = ("year", "month").index(unit) + 1
    if not isinstance(value, Period) or not value.first[0] or value.first[:size] != value.last[:size]:
        return ""
    return "-".join(f"{part:02}" for part in value.first[:size])


def compare(cell: Any, sign: str, wanted: Any) -> bool:
    """Return whether a comparison such as cell < wanted holds; a date equals any period that contains it."""
    if isinstance(cell, Period):
        if sign in ("=", "==", "!="):
            return bool(wanted.first <= cell.first and cell.last <= wanted.last) == (sign != "!=")
        border = wanted.first if sign in ("<", ">=") else wanted.last
        return bool(_COMPARISONS[sign](cell.first, border))
    return bool(_COMPARISONS[sign](cell, wanted))
