"""Documents of plain text."""

import pytest
from corpus.readers.reading import documents_of

from elmo_zh.corpus.readers.plain import read_plain

TEXT = "一\n二\n\n \n三\n\n"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("file", [["一", "二", "", " ", "三", ""]]),
        ("paragraph", [["一", "二", "", " "], ["三", ""]]),
        ("line", [["一"], ["二"], [""], [" "], ["三"], [""]]),
    ],
)
def test_documents_hold_all_lines_in_order(document: str, expected: list[list[str]]) -> None:
    assert documents_of(read_plain, TEXT, document=document) == expected
