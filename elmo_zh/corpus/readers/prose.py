"""Turn HTML and Markdown into lines of prose, without parts such as scripts, menus, code blocks and data tables."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import import_extra
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText, require_length
from elmo_zh.corpus.readers.formats import CorpusFormat, Record
from elmo_zh.corpus.text_files import LONGEST_LINE, as_one_line, lines_of

_NO_PROSE = frozenset(
    ("title", "script", "style", "noscript", "template", "nav", "footer", "aside", "button", "select",
     "textarea", "svg", "math", "iframe", "object", "audio", "video", "canvas", "rt", "rp", "rtc", "dialog", "datalist")
)  # fmt: skip
_INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "img", "ins",
     "kbd", "label", "mark", "q", "rb", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub",
     "sup", "time", "tt", "u", "var", "wbr")
)  # fmt: skip
# Parts of a page that are not its text, by their role; and the style of what is not shown.
_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar"))
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# Elements without an end.
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr")
)
# libxml2 keeps everything it has read of a page until the end.
_LONGEST_HTML = 2**26
_HTML_START = re.compile(r"\s*<(?:!doctype html|html[\s>])", re.IGNORECASE)
# Old pages use tables for layout; a cell is prose if it contains a clause.
_CLAUSE = re.compile(r"[。！？；，…]|[.!?](?:\s|$)")


def read_html(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield a page's lines of prose; the parser builds no tree."""
    etree = import_extra("lxml.etree", f"{text.name} (HTML)")
    require_length(text, _LONGEST_HTML, "HTML")
    page = _Page(tally)
    parser = etree.HTMLParser(target=page, encoding="utf-8", no_network=True, huge_tree=False)
    # Without a start tag the parser reports an empty file as damaged.
    for chunk in chain(("<html>",), text.chunks()):
        parser.feed(chunk.encode("utf-8", "replace"))
        yield from map(Record, page.taken_lines())
    parser.close()
    yield from map(Record, page.taken_lines())


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Return whether an element is not shown, or is not part of the text of its page."""
    return (
        ("hidden" in attributes and attributes["hidden"] != "until-found")
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in _ROLES
        or bool(_NOT_SHOWN.search(attributes.get("style", "")))
    )


class _Page:
    """Collects the lines of prose; the parser calls its methods for each tag, text and comment."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._texts: list[str] = []
        self._num_characters = 0
        self._lines: list[str] = []
        # The dropped element that the parser is in and its nesting depth, then the depths of table and pre.
        self._dropped, self._drop_depth = "", 0
        self._table_depth = self._pre_depth = 0

    def start(self, tag: str, attributes: Any) -> None:
        if self._drop_depth:
            self._drop_depth += tag == self._dropped
        elif tag in _NO_PROSE or (tag == "code" and self._pre_depth) or (tag not in _VOID and _is_hidden(attributes)):
            if tag not in _INLINE:
                self.end_block()
            self._dropped, self._drop_depth = tag, 1
            self._tally.drop(self._reason(), 0)
        elif tag not in _INLINE:
            self.end_block()
            self._table_depth += tag == "table"
            self._pre_depth += tag == "pre"

    def end(self, tag: str) -> None:
        if self._drop_depth:
            self._drop_depth -= tag == self._dropped
        elif tag not in _INLINE:
            self.end_block()
            self._table_depth -= tag == "table" and self._table_depth > 0
            self._pre_depth -= tag == "pre" and self._pre_depth > 0

    def data(self, data: str) -> None:
        if self._drop_depth:
            self._tally.drop(self._reason(), len(data), items=0)
            return
        self._texts.append(data)
        self._num_characters += len(data)
        if self._num_characters > LONGEST_LINE:
            self.end_block()

    def comment(self, comment: str) -> None:
        self._tally.drop("html: comment", len(comment))

    def close(self) -> None:
        """End the last block; the parser calls this at the end of the file."""
        self.end_block()

    def _reason(self) -> str:
        return f"html: {self._dropped}"

    def end_block(self) -> None:
        """Turn the collected text into a line, or into several if preformatted; drop table cells without a clause."""
        text = "".join(self._texts)
        self._texts.clear()
        self._num_characters = 0
        if self._pre_depth:
            self._lines.extend(lines_of(text.strip("\n")))
        elif line := as_one_line(text):
            if self._table_depth and not _CLAUSE.search(line):
                self._tally.drop("html: table cells without a clause", len(line))
            else:
                self._lines.append(line)

    def taken_lines(self) -> list[str]:
        """Return the lines collected since the last call."""
        lines, self._lines = self._lines, []
        return lines


HTML = CorpusFormat(
    read=read_html,
    has_fields=False,
    suffixes=(".html", ".htm", ".xhtml"),
    starts=lambda head: bool(_HTML_START.match(head)),
)


# The parser keeps the whole file in memory.
_LONGEST_MARKDOWN = 2**24
# The parser's time for a paragraph full of brackets grows with the square of its length.
_LONGEST_PARAGRAPH = 20_000
_DROPPED = {"fence": "code", "code_block": "code", "html_block": "html", "front_matter": "front matter"}
_DROPPED_INSIDE = {"image": "picture", "html_inline": "html"}


def read_markdown(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield a line for each heading and paragraph, divided at hard line breaks."""
    parser = _parser(text.name)
    require_length(text, _LONGEST_MARKDOWN, "Markdown")
    yield from map(Record, _markdown_lines(parser, "".join(text.chunks()), tally))


def _parser(name: str) -> Any:
    what = f"{name} (Markdown)"
    parser = import_extra("markdown_it", what).MarkdownIt("commonmark").enable("table").disable("inline")
    parser.use(import_extra("mdit_py_plugins.front_matter", what).front_matter_plugin)
    # Websites mark boxes with lines such as ::: tip, which are not text; the content of a box is.
    return parser.use(import_extra("mdit_py_plugins.container", what).container_plugin, "box", validate=lambda *_: True)


def _markdown_lines(parser: Any, source: str, tally: Tally) -> Iterator[str]:
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
    """Yield a paragraph's text in parts, with U+0000 for hard line breaks; very long paragraphs keep their markup."""
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


MARKDOWN = CorpusFormat(read=read_markdown, has_fields=False, suffixes=(".md", ".markdown"))
