"""Numbers for people."""

import pytest

from elmo_zh.run.reporter import counted, first_ten


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
