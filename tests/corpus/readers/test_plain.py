"""Plain text, text that other programs segmented, subtitles, and the layouts that are named."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from corpus.readers.reading import dropped_of, read, text_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import is_corpus_name, is_other_name
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.readers.formats import find_format
from elmo_zh.corpus.readers.plain import LAYOUTS, find_layout
from elmo_zh.corpus.sources import find_sources


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


CWB = '<text id="A" year="1998">\n<s>\n我们\tr\n爱\tv\nA&amp;B\tn\n</s>\n<s>\n好\ta\n。\tw\n</s>\n</text>\n'
CWB += '<text id="B" year="2001">\n<s>\n再见\tv\n</s>\n</text>\n'
OURS = '<s id="1" line="0">\n<node>\n苹果\n</node>\n很\n好\n</s>\n<s id="2" line="4">\n吃\n苹果\n</s>\n'
CONLLU = "# text = 我们爱\n1\t我们\t我们\tPRON\t_\t_\t2\tnsubj\t_\t_\n2-3\t爱你\t_\t_\t_\t_\t_\t_\t_\t_\n"
CONLLU += "2\t爱\t爱\tVERB\t_\t_\t0\troot\t_\t_\n\n1\t好\t好\tADJ\t_\t_\t0\troot\t_\t_\n\n"
PFR = "19980101-01-001-001/m  迈向/v  充满/v  希望/n  的/u  ２１/m  世纪/n\n\n"
PFR += "[中央/n  电视台/n]nt  报道/v  长{chang2}/a  。/w\n"
COLUMNS = "".join(f"词{n}\tn\n" for n in range(9)) + "\n词\tn\n"
SRT = "1\n00:00:01,000 --> 00:00:03,500\n<i>今天下雨。</i>\n真大。\n\n2\n00:00:04,000 --> 00:00:05,000\n{\\an8}好\n"
ASS = "[Script Info]\nTitle: 题\n[Events]\nFormat: Layer, Start\n"
ASS += "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\pos(1,2)}今天，下雨。\\N真大。\n"


@pytest.mark.parametrize(
    ("content", "kind", "lines"),
    [
        (CWB, "vertical", ["我们 爱 A&B", "好 。", "再见"]),
        (OURS, "vertical", ["苹果 很 好", "吃 苹果"]),
        (CONLLU, "vertical", ["我们 爱", "好"]),
        (COLUMNS, "vertical", [" ".join(f"词{n}" for n in range(9)), "词"]),
        (PFR, "tagged", ["迈向 充满 希望 的 ２１ 世纪", "", "中央 电视台 报道 长 。"]),
        ("我们_PN 爱_VV 北京_NR 。_PU 他_PN\n", "tagged", ["我们 爱 北京 。 他"]),
        (SRT, "subtitles", ["今天下雨。", "真大。", "好"]),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\n- 好\n", "subtitles", ["- 好"]),
        (ASS, "subtitles", ["今天，下雨。", "真大。"]),
        ("[ti:歌]\n[00:01.20]今天\n[00:03.10][00:09.10]下雨\n", "subtitles", ["今天", "下雨"]),
    ],
)  # fmt: skip
def test_layouts_that_are_read(tmp_path: Path, content: str, kind: str, lines: list[str]) -> None:
    for name in ("a.txt", "a"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert find_format(text_of(content, name), "auto") == kind
        tally = Tally()
        assert read(tmp_path / name, tally) == lines
        assert sum(map(len, lines)) + sum(dropped_of(tally).values()) >= len(content.replace("\n", "")) - 4
        [source] = find_sources([str(tmp_path / name)]).sources
        assert [record.line for record in input_text(source, TextConfig()).records()] == lines


def test_attributes_of_elements_are_columns(tmp_path: Path) -> None:
    (tmp_path / "a.vrt").write_text(CWB, encoding="utf-8")
    [source] = find_sources([str(tmp_path / "a.vrt")]).sources
    columns = [dict(record.columns) for record in input_text(source, TextConfig()).records()]
    assert columns == [{"text_id": "A", "text_year": "1998"}] * 2 + [{"text_id": "B", "text_year": "2001"}]


def test_articles_of_wikiextractor_have_columns_and_one_variant(tmp_path: Path) -> None:
    line = "-{zh-hant:軟體;zh-hans:软件}-很好。"
    article = f'<doc id="7" url="https://zh.wikipedia.org/wiki?curid=7" title="软件&amp;">\n{line}\n</doc>\n'
    (tmp_path / "wiki_00").write_text(article, encoding="utf-8")
    [source] = find_sources([str(tmp_path / "wiki_00")]).sources
    [record] = input_text(source, TextConfig()).records()
    assert (record.line, record.columns["id"], record.columns["title"]) == ("软件很好。", "7", "软件&")
    (tmp_path / "b.jsonl").write_text(f'{{"id": "7", "url": "u", "title": "t", "text": "{line}"}}\n', encoding="utf-8")
    assert read(tmp_path / "b.jsonl") == ["软件很好。"]


WRAPPED = (
    "改革开放以来，我国的经济得到了很大发\n展。人们的生活水平不断提高，教育事业也\n"
    "得到了很大的发展。专家认为，高质量发\n展是主题。\n"
)
PROSE = "今天天气很好，我们去公园散步。\n他说：“好。”\n然后回家吃饭了！\n晚上下雨了。\n"


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (PROSE, ""),
        (WRAPPED, "hard line breaks"),
        ("国务院召开会议\n北京今天下雨\n中国队夺冠，球迷欢呼庆祝\n苹果降价\n新华社评论员文章发表了\n", ""),
        ("[00:12:01] 今天下雨。\n[00:12:05] 真大。\n[00:13:00] 好。\n[00:13:09] 走。\n", "time codes"),
        ('<?xml version="1.0"?>\n<TEI>\n<p>今天</p>\n', "markup"),
        ("\\documentclass{article}\n\\begin{document}\n今天\n", "markup"),
        ("".join(f"{n}\t{line}\n" for n, line in enumerate(PROSE.splitlines())), "format"),
        ("".join(f"{('体育', '教育')[n % 2]} 第{n}句话是这样的。\n" for n in range(12)), "line starts"),
        ("".join(f"__label__体育 第{n}句话是这样的。\n" for n in range(4)), "line starts"),
        ("".join(f"T{n:04} 第{n}句话是这样的。\n" for n in range(6)), "line starts"),
        ("甲,第一句话。\n乙,第二句话。\n丙,第三句话。\n丁,第四句话。\n", "format"),
        ('{"text": "今天"}\n{"text": "明天"}\n', "format"),
        ("<html><body><p>今天</p></body></html>\n", "format"),
        ("<PER>张三</PER>去了<LOC>北京</LOC>。\n我们不知道。\n<PER>李四</PER>也去了。\n", "markup"),
        ("2020-03-07 12:01:33 张三\n你好\n2020-03-07 12:02:10 李四\n好的，明天见\n", "time codes"),
        ("我 爱 北京 天安门 。\n今天 天气 很 好 。\n他 说 不 去 。\n我们 去 公园 散步 。\n", "words"),
    ],
)
def test_layouts_that_are_named(content: str, layout: str) -> None:
    assert find_layout(content)[0] == layout
    assert not layout or layout in LAYOUTS


def test_a_layout_is_told_and_broken_lines_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(WRAPPED, encoding="utf-8")
    told = elmo_zh("concordance", "发展", path, "--json")
    assert (told.result()["lines"], "text.join_lines=true" in told.stderr) == (1, True)
    joined = elmo_zh("concordance", "发展", path, "--json", "--set", "text.join_lines=true")
    assert (joined.result()["lines"], joined.stderr) == (3, "")
    segmented = elmo_zh("segment", path, "--run", tmp_path / "run")
    assert "text.join_lines=true" in segmented.stderr
    assert read(path, join_lines=True) == [WRAPPED.replace("\n", "")]
