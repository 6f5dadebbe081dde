"""Numbers for people."""

import pytest

from elmo_zh.run.reporter import counted


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (12_345, "12,345 lines")]
)
def test_a_number_with_its_noun(number: int, expected: str) -> None:
    assert counted(number, "line") == expected
