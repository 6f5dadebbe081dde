"""Markdown to prose."""

import pytest
from corpus.readers.reading import documents_of

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers.prose import read_markdown

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
    assert documents_of(read_markdown, SOURCE, tally) == [
        ["标题 一", "今天a()下雨，见网站。第二行", "换行好", "项一", "项二", "引文", "盒子里。"]
    ]
    assert tally.dropped == {
        "markdown: front matter": 8,
        "markdown: picture": 1,
        "markdown: html": 4 + 13,
        "markdown: code": 12,
        "markdown: table": 4,
    }


@pytest.mark.parametrize("sign", ["[", "*a ", "> ", "- ", "![", "`"])
def test_hostile_paragraphs_end(sign: str) -> None:
    assert documents_of(read_markdown, sign * 50_000 + "完")
