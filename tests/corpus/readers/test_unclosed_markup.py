"""Markup that is never closed."""

import pytest

from elmo_zh.corpus.readers.wikitext import num_unclosed


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{a|[[b]]}}[http://c d]<ref name=x>e</ref><ref name=y /><br>\n{|\n|-\n|}<!-- -->", 0),
        ("{{{{", 2),
        ("}}{{", 1),
        ("<li>a<li>b<td>c", 0),
        ("<b>a<B>b</b>", 1),
        ("{{a [[b [[c}}", 2),
        ("a < b > c, [1] [a]", 0),
        ("{{" * 43 + "}}" * 43, 3),
    ],
)
def test_what_is_counted(source: str, expected: int) -> None:
    assert num_unclosed(source) == expected
