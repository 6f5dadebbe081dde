"""RUN/corpus_report.md: the numbers, and that no corpus can break it."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import LineCounts, PassedOver, Tally, visible
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.run.tables import code_span
from elmo_zh.segmenting.report import corpus_report
from elmo_zh.segmenting.segment_corpus import SegmentCounts, SegmentedCorpus, segment_corpus

# A reader of Markdown that knows tables and passes HTML on, as most do.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
CONFIG = TextConfig(segmenter="character", heldout_share=0.0, num_workers=1)
HOSTILE = (
    "``` <script>alert(1)</script> ```",
    "`a`` | b ``` c\u200b",
    "\x1b[2J\x07山\u202e水",
    "|---|Ａ",
    "# 题\u200b<!-- <img src=x onerror=y>",
    "](http://x) ![x](y)\u200b **粗** __TOC__",
    "\\`山\u200b\\",
    " ` \u200b山 `",
    "\u2028## 二\u200b",
    "<br>" * 99 + "山" * 999,
)


def segmented(folder: Path, *texts: str, **changes: Any) -> tuple[SegmentedCorpus, list[str]]:
    corpus = folder / "c"
    corpus.mkdir()
    for number, text in enumerate(texts):
        (corpus / f"{number}.txt").write_text(text, encoding="utf-8", newline="\n")
    sources = find_sources([str(corpus)])
    config = TextConfig(**{**vars(CONFIG), **changes})
    done = segment_corpus(sources, folder / "out", config, None, SilentReporter())
    return done, [f"{number}.txt" for number in range(len(texts))]


def inline(text: str) -> Iterator[Any]:
    for token in MARKDOWN.parse(text):
        yield token
        yield from token.children or ()


def test_the_numbers(tmp_path: Path) -> None:
    done, names = segmented(tmp_path, "<b>山</b>水。\n\n<p></p>\n", "Ａ　好\x00\nabcdef\n", min_han_share=0.3)
    report = corpus_report(done, names)
    lines = report.splitlines()
    assert "27 characters read = 14 kept + 13 dropped" in report
    for line in (
        "| `0.txt` | text in utf-8 | 1 | 17 | 10 | lines of markup only 7; lines without a word 0 |",
        "| `1.txt` | text in utf-8 | 1 | 10 | 4 | lines with too little Chinese 6 |",
        "- `<b>山</b>水。` became `山水。`",
        "- `Ａ\\u3000好\\x00` became `A\\u3000好\\x00`",
        "- `A\\u3000好` became `A 好`",
        "- `abcdef`",
    ):
        assert line in lines
    for kind, figures in (
        ("lines of markup only", "lines: 1; characters: 7"),
        ("lines without a word", "lines: 1; characters: 0"),
        (r"remove\_markup", "lines: 1; characters in: 14; characters out: 7"),
        (r"remove\_control", "lines: 1; characters in: 7; characters out: 6"),
    ):
        assert lines[lines.index(f"### {kind}") + 2] == figures
    for tally in done.tallies:
        assert tally.characters == tally.kept_characters + sum(tally.dropped.values())


def test_a_hostile_corpus_breaks_nothing(tmp_path: Path) -> None:
    done, names = segmented(tmp_path, "\n".join(HOSTILE), max_line_characters=500)
    names = ["a|b`c\n# <b>\u202e.txt"]
    done.passed_over.add("cannot tell which field holds the text: <b>|`x`\n# y", "\x1b[2J<script>")
    report = corpus_report(done, names)
    # Nothing but ordinary lines: no character that a terminal obeys, none that cannot be seen.
    assert all(line.isprintable() for line in report.split("\n"))
    tokens = list(inline(report))
    assert not {"html_block", "html_inline", "image", "link_open", "strong_open", "em_open", "hr"} & {
        t.type for t in tokens
    }
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert titles[:3] == ["What became of the corpus", "Sources", "What was changed, step by step"]
    assert all(re.match(r"What|Sources|Kept, but|[a-z\\_]+$|lines |cannot tell", title) for title in titles)
    shown = {token.content for token in tokens if token.type == "code_inline"}
    assert visible(names[0]) in shown
    for line in HOSTILE[:3]:
        assert any(visible(line) == text for text in shown)


@settings(deadline=None, max_examples=151)
@given(st.one_of(st.text(st.sampled_from("` |\\<>*_[]a山\u200b\n")), st.text(st.characters())))
@example("`")
@example(" ")
@example("  a ")
@example("``a`")
def test_a_code_span_shows_the_text_as_it_is(text: str) -> None:
    shown = visible(text)
    (paragraph,) = [token for token in MARKDOWN.parse(f"- {code_span(shown)} became") if token.type == "inline"]
    if not shown:
        assert paragraph.content == "(nothing) became"
        return
    span, rest = paragraph.children or ()
    assert (span.type, span.content) == ("code_inline", shown)
    assert (rest.type, rest.content) == ("text", " became")


ONE_SOURCE = SegmentedCorpus(counts=SegmentCounts(), tallies=[Tally()], lines=LineCounts(), passed_over=PassedOver())
