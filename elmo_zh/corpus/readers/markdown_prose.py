"""Turn Markdown into prose: headings, paragraphs and list items, without code, tables, images, HTML or front matter."""

from collections.abc import Iterator
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import import_extra
from elmo_zh.corpus.decoding import DecodedText, require_length
from elmo_zh.corpus.lines import as_one_line, lines_of
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally

# The parser keeps the whole file in memory.
LONGEST_FILE = 2**24
# The parser's time for a paragraph full of brackets grows with the square of its length.
_LONGEST_PARAGRAPH = 20_000
_DROPPED = {"fence": "code", "code_block": "code", "html_block": "html", "front_matter": "front matter"}
_DROPPED_INSIDE = {"image": "picture", "html_inline": "html"}


def read_markdown(text: DecodedText, _config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the file as one document, with a line for each heading, paragraph, list item or hard line break."""
    parser = _parser(text.name)
    require_length(text, LONGEST_FILE, "Markdown")
    yield _lines(parser, "".join(text.chunks()), tally)


def _parser(name: str) -> Any:
    what = f"{name}: Markdown"
    parser = import_extra("markdown_it", what).MarkdownIt("commonmark").enable("table").disable("inline")
    parser.use(import_extra("mdit_py_plugins.front_matter", what).front_matter_plugin)
    # Websites mark boxes with lines such as ::: tip, which are not text; the content of a box is.
    return parser.use(import_extra("mdit_py_plugins.container", what).container_plugin, "box", validate=lambda *_: True)


def _lines(parser: Any, source: str, tally: Tally) -> Iterator[str]:
    if num_zeros := source.count("\0"):
        # The parser would replace them with U+FFFD.
        tally.drop("markdown: U+0000", num_zeros)
        source = source.replace("\0", "")
    env: dict[str, Any] = {}
    is_in_table = False
    for token in parser.parse(source, env):
        if token.type in ("table_open", "table_close"):
            is_in_table = token.type == "table_open"
        elif token.type in _DROPPED:
            tally.drop(f"markdown: {_DROPPED[token.type]}", len(token.content))
        elif token.type == "inline" and is_in_table:
            tally.drop("markdown: table", len(token.content))
        elif token.type == "inline":
            for line in "".join(_prose(parser, token.content, env, tally)).split("\0"):
                yield from lines_of(as_one_line(line))


def _prose(parser: Any, content: str, env: dict[str, Any], tally: Tally) -> Iterator[str]:
    """Yield the text of a paragraph, with U+0000, which Markdown cannot contain, for each hard line break."""
    if len(content) > _LONGEST_PARAGRAPH:
        yield content
        return
    tokens: list[Any] = []
    parser.inline.parse(content, parser, env, tokens)
    for token in tokens:
        if token.type in _DROPPED_INSIDE:
            tally.drop(f"markdown: {_DROPPED_INSIDE[token.type]}", len(token.content))
        elif token.type == "softbreak":
            yield "\n"
        elif token.type == "hardbreak":
            yield "\0"
        else:
            yield token.content


FORMAT = CorpusFormat(read=read_markdown, title="Markdown", has_fields=False, suffixes=(".md", ".markdown"))
