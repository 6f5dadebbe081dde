"""Numbers for people."""

import pytest

from elmo_zh.run.reporter import counted, first_ten, format_bytes, format_seconds


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (12_345, "12,345 lines")]
)
def test_a_number_with_its_noun(number: int, expected: str) -> None:
    assert counted(number, "line") == expected


def test_many_names_are_not_all_named() -> None:
    names = list("一二三四五六七八九十")
    assert first_ten(names[:2]) == "一, 二"
    assert first_ten(names) == "一, 二, 三, 四, 五, 六, 七, 八, 九, 十"
    assert first_ten([*names, "百"]) == f"{first_ten(names)} and others"


def test_sizes_for_people() -> None:
    assert [format_bytes(n) for n in (0, 1, 2.4, 999)] == ["0 bytes", "1 byte", "2 bytes", "999 bytes"]
    assert [format_bytes(n) for n in (1.5e3, 2e6, 3.26e9, 4e12)] == ["1.5 kB", "2.0 MB", "3.3 GB", "4.0 TB"]


def test_durations_for_people() -> None:
    assert [format_seconds(n) for n in (0, 0.6, 89.4)] == ["0 s", "1 s", "89 s"]
    assert [format_seconds(n) for n in (90, 754, 5399)] == ["2 min", "13 min", "90 min"]
    assert [format_seconds(n) for n in (5400, 359_999, 360_000)] == ["1.5 h", "100.0 h", "4 days"]
