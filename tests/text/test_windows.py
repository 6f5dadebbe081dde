"""Windows of a stream: where they end."""

import pytest

from elmo_zh.text import windows
from elmo_zh.text.windows import iter_windows


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("", []),
        ("a bb ccc", [["a", "bb", "ccc"]]),
        ("aaaa bbb c", [["aaaa", "bbb"], ["c"]]),
        ("aaaaaaaa b c d e", [["aaaaaaaa"], ["b", "c", "d"], ["e"]]),
        ("a b c", [["a", "b", "c"]]),
    ],
)
def test_windows_end_with_the_item_that_reaches_a_limit(items: str, expected: list[list[str]]) -> None:
    assert list(iter_windows(items.split(), len, most_items=3, most_size=7)) == expected


def test_the_usual_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [len(window) for window in iter_windows(["a"] * 4003, len)] == [2000, 2000, 3]
    assert [len(window) for window in iter_windows(["a" * 7000] * 4, len)] == [3, 1]
    monkeypatch.setattr(windows, "WINDOW_ITEMS", 3)
    assert [len(window) for window in iter_windows(["a"] * 4, len)] == [3, 1]


def test_a_stream_is_read_no_further_than_needed() -> None:
    stream = iter("abcdefg")
    assert next(iter_windows(stream, len, most_items=3)) == ["a", "b", "c"]
    assert next(stream) == "d"
