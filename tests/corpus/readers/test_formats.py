"""Which reader is taken for which file."""

import pytest
from corpus.readers.reading import documents_of, text_of

from elmo_zh.corpus.content import is_corpus_name, is_other_name
from elmo_zh.corpus.readers.formats import find_format
from elmo_zh.corpus.readers.plain import read_plain


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", '{"text": "一"}\n', "text"),
        ("a.csv.gz", "a,b\n", "csv"),
        ("A.TSV", "a\tb\n", "tsv"),
        ("a.jsonl", "", "jsonl"),
        ("a.ndjson.zst", "", "jsonl"),
        ("a.json", '[{"text": "一"}]', "json"),
        ("a.json", '{"text": "一"}\n{"text": "二"}\n', "jsonl"),
        ("a.json", '{\n  "data": []\n}', "json"),
        ("a.xml.bz2", "<mediawiki>", "wikidump"),
        ("a.htm", "", "html"),
        ("a.md", "", "markdown"),
        ("wiki_00", '{"id": 1, "text": "一"}\n', "jsonl"),
        ("wiki_00", '<doc id="1" url="u" title="t">\n一\n</doc>\n', "wikiextractor"),
        ("dump", '<?xml version="1.0"?>\n<mediawiki>', "wikidump"),
        ("dump", "<mediawiki xmlns='a'>", "wikidump"),
        ("page", "<!DOCTYPE html><p>", "html"),
        ("page", '["一", "二"]', "json"),
        ("page", "[一] 今天下雨。\n", "text"),
        ("page", "{今天}\n", "text"),
        ("page", "[[历史]]是一个词。\n", "text"),
        ("page", '[[ ["一"]]]', "json"),
        ("page", "", "text"),
        ("a.human", "今天下雨。", "text"),
    ],
)
def test_name_and_start_decide(name: str, text: str, expected: str) -> None:
    assert find_format(text_of(text, name), "auto") == expected
    assert find_format(text_of(text, name), "csv") == "csv"


@pytest.mark.parametrize(
    ("name", "is_corpus", "is_other"),
    [
        ("a.txt", True, False),
        ("README", True, False),
        ("a.CSV.xz", True, False),
        ("a.tar.gz", True, False),
        ("a.tgz", True, False),
        ("a.png", False, True),
        ("a.py", False, True),
        ("a.pdf.gz", False, True),
        ("a.human", False, False),
        ("zhwiki-latest-pages-articles-multistream-index.txt.bz2", False, True),
    ],
)
def test_names(name: str, is_corpus: bool, is_other: bool) -> None:
    assert (is_corpus_name(name), is_other_name(name)) == (is_corpus, is_other)


# Documents of plain text and of wikiextractor's own format


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
