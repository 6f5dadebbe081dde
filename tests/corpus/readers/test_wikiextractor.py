"""wikiextractor's own format."""

from corpus.readers.reading import documents_of

from elmo_zh.corpus.readers.wikiextractor import read_wikiextractor


def test_articles() -> None:
    text = '<doc id="1" url="x?a=1" title="雨">\n雨\n\n雨是水。a &lt; b\n</doc>\n<doc id="2" title="风">\n风\n</doc>\n'
    assert documents_of(read_wikiextractor, text) == [["雨", "", "雨是水。a < b"], ["风"]]
