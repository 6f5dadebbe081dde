"""HTML and Markdown to prose."""

import pytest
from corpus.readers.reading import dropped_of, lines_from

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers import prose as module
from elmo_zh.corpus.readers.prose import read_html, read_markdown


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>今天<b>下雨</b>。</p><p>明天&amp;后天", ["今天下雨。", "明天&后天"]),
        ("　　第一段。<br><br>　　第二段。", ["　　第一段。", "　　第二段。"]),
        ("<ul><li>一<li>二</ul><h1>三</h1>", ["一", "二", "三"]),
        ("<p>今天\n  天气\n很 好。 a\nb</p>", ["今天天气很 好。 a b"]),
        ("<head><title>题</title><style>a{}</style></head><p>正文<script>if(a<b){}</script>。", ["正文", "。"]),
        ("<nav><a>菜单</a></nav>文", ["文"]),
        ("<table><tr><td>1990</td><td>这是一句话。</td></tr></table>", ["这是一句话。"]),
        ("<pre>行一\n 行二\n</pre><pre><code>x = 1</code></pre>", ["行一", " 行二"]),
        ("<aside><aside>a</aside>b</aside><!-- 注 -->文", ["文"]),
        ("<nav>菜单没有完", []),
        ("<form><p>有些网站把整页放在表单里。</p><select><option>甲</select></form>", ["有些网站把整页放在表单里。"]),
        ("<p>读<ruby>漢<rp>(</rp><rt>hàn</rt><rp>)</rp>字<rt>zì</rt></ruby>书</p>", ["读漢字书"]),
        ("<p>甲<span hidden>乙<b>丙</b></span>丁</p><div hidden><div>戊</div></div>", ["甲丁"]),
        ("<p>己<img hidden>庚", ["己庚"]),
        ("<template><p>甲</template><div role=navigation>乙</div><p style='display: none'>丙</p>丁", ["丁"]),
        ("", []),
    ],
)  # fmt: skip
def test_prose(source: str, expected: list[str]) -> None:
    tally = Tally()
    assert lines_from(read_html, source, tally) == expected
    assert tally.characters == sum(dropped_of(tally).values())


def test_what_is_left_out_is_counted() -> None:
    tally = Tally()
    lines_from(read_html, "<script>abc</script><nav>一<a>二</a></nav><table><td>三<td>四五</table><!--六-->", tally)
    assert dropped_of(tally) == {
        "html: script": 3,
        "html: nav": 2,
        "html: table cells without a clause": 3,
        "html: comment": 1,
    }


def test_a_page_is_parsed_in_pieces_however_deep_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 101)
    lines = lines_from(read_html, "<div>" * 50_000 + "天" * 211 + "</div>" * 50_000 + "<p>完")
    assert "".join(lines) == "天" * 211 + "完"


def test_entities_that_a_page_declares_are_not_expanded() -> None:
    source = '<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><p>甲&b;乙</p>'
    assert "aaaa" not in "".join(lines_from(read_html, source)[-1:])


SOURCE = """---
title: 题
---

# 标题 *一*

今天`a()`下雨，
见[网站](http://a.b)。![图](c.png)
第二行\\
换行<br>好

- 项一
- 项二

> 引文

```python
print("代码")
```

| 年 | 数 |
|---|---|
| 1 | 2 |

::: tip 提示
盒子里。
:::

<div>块</div>
"""


def test_prose_and_counts() -> None:
    tally = Tally()
    assert lines_from(read_markdown, SOURCE, tally) == [
        "标题 一", "今天a()下雨，见网站。第二行", "换行好", "项一", "项二", "引文", "盒子里。",
    ]  # fmt: skip
    assert dropped_of(tally) == {
        "markdown: front matter": 8,
        "markdown: picture": 1,
        "markdown: html": 4 + 13,
        "markdown: code": 12,
        "markdown: table": 4,
    }


@pytest.mark.parametrize("sign", ["[", "*a ", "> ", "- ", "![", "`"])
def test_hostile_paragraphs_end(sign: str) -> None:
    lines_from(read_markdown, sign * 50_000 + "完")
