"""A code span of Markdown shows any text as it is."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from elmo_zh.corpus.counts import visible
from elmo_zh.run.tables import code_span


@settings(deadline=None, max_examples=151)
@given(st.one_of(st.text(st.sampled_from("` |\\<>*_[]a山\u200b\n")), st.text(st.characters())))
@example("`")
@example(" ")
@example("  a ")
@example("``a`")
def test_a_code_span_shows_the_text_as_it_is(text: str) -> None:
    shown = visible(text)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(f"- {code_span(shown)} became")
    (paragraph,) = [token for token in tokens if token.type == "inline"]
    if not shown:
        assert paragraph.content == "(nothing) became"
        return
    span, rest = paragraph.children or ()
    assert (span.type, span.content) == ("code_inline", shown)
    assert (rest.type, rest.content) == ("text", " became")
