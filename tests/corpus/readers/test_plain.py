"""Documents of plain text, and of wikiextractor's own format."""

import pytest
from corpus.readers.reading import documents_of

from elmo_zh.corpus.readers.plain import read_plain, read_wikiextractor

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


def test_articles_of_wikiextractor() -> None:
    text = '<doc id="1" url="x?a=1" title="雨">\n雨\n\n雨是水。a &lt; b\n</doc>\n<doc id="2" title="风">\n风\n</doc>\n'
    assert documents_of(read_wikiextractor, text) == [["雨", "", "雨是水。a < b"], ["风"]]
