"""Read the prose of the articles in a MediaWiki XML dump (pages-articles), without tables and most templates."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import without_variants
from elmo_zh.corpus.content import CONVERT, CORRECT, UnsuitableError, import_extra, too_long
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Record
from elmo_zh.corpus.text_files import lines_of
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

# MediaWiki limits pages to 2 MiB; some wikis allow more.
LONGEST_PAGE_BYTES = 2**26
# Old dumps have no element for redirects.
_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向|重新导向|重新導向)\s*:?\s*\[\[", re.IGNORECASE)


def read_wikidump(text: DecodedText, _config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield the lines of the articles, skipping redirects, other namespaces and pages that are not wikitext."""
    for page in _pages(text):
        title = page.findtext("{*}title") or "(no title)"
        reason = _reason_to_pass_over(page)
        if reason:
            tally.pass_over(reason, title)
        else:
            source = page.findtext("{*}revision/{*}text") or ""
            yield from map(Record, wikitext_lines(source, tally))


def _reason_to_pass_over(page: Any) -> str:
    if (page.findtext("{*}ns") or "0").strip() != "0":
        return N_("wiki pages outside the main namespace")
    if page.find("{*}redirect") is not None or _REDIRECT.match(page.findtext("{*}revision/{*}text") or ""):
        return N_("redirect pages")
    if (page.findtext("{*}revision/{*}model") or "wikitext").strip() != "wikitext":
        return N_("wiki pages that are not wikitext")
    return ""


def _pages(text: DecodedText) -> Iterator[Any]:
    etree = import_extra("lxml.etree", f"{text.name} (MediaWiki)")
    # Nothing is fetched, no entity is expanded, and libxml2's own limits on depth and text length stay on.
    parser = etree.XMLPullParser(
        ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, encoding="utf-8"
    )
    is_first = True
    num_bytes = 0
    try:
        for chunk in text.chunks():
            data = chunk.encode("utf-8", "replace")
            num_bytes += len(data)
            parser.feed(data)
            for event, element in parser.read_events():
                if is_first:
                    _require_dump(text, element)
                    import_extra("wikitextparser", f"{text.name} (MediaWiki)")
                    is_first = False
                if event == "end" and _local_name(element) == "page":
                    num_bytes = 0
                    yield element
                    _forget(element)
            if num_bytes > LONGEST_PAGE_BYTES:
                raise too_long(f"{text.name}: <page>", LONGEST_PAGE_BYTES)
        parser.close()
    except etree.XMLSyntaxError as error:
        raise UnsuitableError(
            text.name,
            N_("damaged or truncated XML"),
            _(CORRECT),
            " ".join(str(error).split())[:100],
        ) from None


def _require_dump(text: DecodedText, root: Any) -> None:
    has_type = root.getroottree().docinfo.internalDTD is not None
    if has_type or _local_name(root) != "mediawiki":
        details = "<!DOCTYPE ...>" if has_type else ""
        unsuitable = UnsuitableError(text.name, N_("XML, but not a MediaWiki dump"), _(CONVERT), details)
        # No dump declares a type, with which a file can attack a parser: skipping it in a folder would hide that.
        raise CorpusError(*unsuitable.messages) if has_type else unsuitable


def _local_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _forget(element: Any) -> None:
    """Free an element and its earlier siblings, which the tree would otherwise keep in memory."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def _starts_as_dump(head: str) -> bool:
    start = head.lstrip()
    return start.startswith("<mediawiki") or (start.startswith("<?xml") and "<mediawiki" in head[:2000])


WIKIDUMP = CorpusFormat(read=read_wikidump, has_fields=False, suffixes=(".xml",), starts=_starts_as_dump)


# Namespaces whose links are not prose, in English and as the Chinese Wikipedia spells them.
_FILES = ("file", "image", "文件", "檔案", "档案", "图像", "圖像", "媒体", "media")
_CATEGORIES = ("category", "分类", "分類")
_DROPPED_TAGS = frozenset(
    ("ref", "references", "table", "gallery", "math", "chem", "score", "timeline", "imagemap", "syntaxhighlight",
     "source", "templatedata", "graph", "mapframe", "style", "script", "noinclude", "includeonly", "templatestyles")
)  # fmt: skip
# Behaviour switches such as __NOTOC__ and __无目录__.
_SWITCH = re.compile(r"__(?:[A-Z]{2,30}|[\u4e00-\u9fff]{2,12})__")
# MediaWiki limits pages to 2 MiB; the parser creates an object for each markup character.
LONGEST_WIKITEXT = 2**21
# List markers beyond any meaningful depth.
_DEEP_ITEM = re.compile(r"(?m)(?<=^[*#:;]{30})[*#:;]+")
# For each mark that is never closed, the parser reads to the end of the page. This many characters take seconds.
MOST_UNCLOSED_WORK = 3e7
# Parameters that hold a template's visible text: foreign words, links to other wikis, unbreakable words, quotations.
_SHOWN_PARAMETERS: dict[str, Sequence[str]] = {
    "lang": ("2",),
    "le": ("3", "1"),
    **dict.fromkeys(("tsl", "translink"), ("4", "3")),
    **dict.fromkeys(("nowrap", "nobr", "small", "lj", "ruby", "quote", "cquote", "quotation"), ("1", "text")),
}
_HEADING = re.compile(r"(?m)^={1,6}(.+?)={1,6}[ \t]*$")
_ITEM = re.compile(r"(?m)^[*#:;]+|^-{4,}")
_EMPTY_BRACKETS = re.compile(r"（[\s，、；,;]*）|\([\s，、；,;]*\)")


_ALONE = frozenset(("br", "hr", "wbr", "img", "meta", "link", "li", "dt", "dd", "td", "th", "tr"))
_MARK = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|\[(?=[a-z/]{2,9}[:/])|\]|<!--|-->|</?[a-zA-Z]+(?=[\s/>])(?:[^<>]{0,300}?/>)?"
)
_CLOSES = {"}}": "{{", "]]": "[[", "|}": "{|", "]": "[", "-->": "<!--"}


def wikitext_lines(source: str, tally: Tally) -> Iterator[str]:
    """Yield the lines of a page's prose, and count dropped text by kind; pages too hard to parse are dropped."""
    page = _without_open_comment(source, tally)
    if len(page) > LONGEST_WIKITEXT:
        tally.drop("wikitext: page longer than MediaWiki allows", len(page))
        return
    page = _DEEP_ITEM.sub("", page)
    if num_unclosed(page) * len(page) > MOST_UNCLOSED_WORK:
        tally.drop("wikitext: page with unclosed markup", len(page))
        return

    def counted(kind: str, before: str, after: str) -> str:
        if len(after) < len(before):
            tally.drop(f"wikitext: {kind}", len(before) - len(after))
        return after

    page = counted("other Chinese variants", page, without_variants(page))
    prose = _Page(page, tally).prose()
    prose = counted("behavior switch", prose, _SWITCH.sub("", prose))
    yield from lines_of(counted("brackets left empty", prose, _EMPTY_BRACKETS.sub("", prose)))


def _without_open_comment(source: str, tally: Tally) -> str:
    """Return a page up to a comment that is never closed, which MediaWiki treats as reaching to the end."""
    start = source.find("<!--", source.rfind("-->") + 1)
    if start < 0:
        return source
    tally.drop("wikitext: comment", len(source) - start)
    return source[:start]


def num_unclosed(source: str) -> int:
    """Count the marks that are opened and never closed, which slow down parsing."""
    depths = Counter[str]()
    for match in _MARK.finditer(source):
        mark = match[0]
        tag = mark.strip("</").lower()
        if kind := _CLOSES.get(mark):
            depths[kind] -= depths[kind] > 0
        elif not mark.startswith("<") or mark == "<!--":
            depths[mark] += 1
        elif not mark.endswith("/>") and tag not in _ALONE:
            depths[tag] += -(depths[tag] > 0) if mark.startswith("</") else 1
    return depths.total()


class _Page:
    """A page as a list of characters, from which markup is taken out where the parser has found it."""

    def __init__(self, source: str, tally: Tally) -> None:
        import wikitextparser

        self._tally = tally
        self._characters: list[str] = list(source)
        self._parsed = wikitextparser.parse(source)

    def prose(self) -> str:
        """Return the prose of the page, and count the markup that is left out along with its content."""
        page = self._parsed
        self._drop_blocks()
        for template in page.templates:
            self._template(template)
        for function in page.parser_functions:
            self._function(function)
        for argument in page.parameters:
            self._drop("argument", *argument.span)
        for link in page.wikilinks:
            self._link(link)
        for link in page.external_links:
            if link.text is None:
                self._drop("address", *link.span)
            else:
                self._keep(link.span, (link.span[1] - 1 - len(link.text), link.span[1] - 1))
        for mark in page.get_bolds_and_italics():
            self._keep(mark.span, _inside(mark, 1))
        for tag in page.get_tags():
            self._tag(tag)
        text = "".join(self._characters)
        return html.unescape(_HEADING.sub(r"\1", _ITEM.sub("", text)))

    def _drop_blocks(self) -> None:
        """Take out comments, tables and other elements that are not prose, with their contents."""
        for comment in self._parsed.comments:
            self._drop("comment", *comment.span)
        for table in self._parsed.tables:
            self._drop("table", *table.span)
        for tag in self._parsed.get_tags():
            if tag.name.lower() in _DROPPED_TAGS:
                self._drop(tag.name.lower(), *tag.span)

    def _is_left(self, start: int) -> bool:
        """Return whether the markup at a place has not yet been taken out along with the markup around it."""
        return self._characters[start] != ""

    def _drop(self, kind: str, start: int, end: int) -> None:
        if self._is_left(start):
            self._tally.drop(f"wikitext: {kind}", sum(map(len, self._characters[start:end])))
            self._remove(start, end)

    def _remove(self, start: int, end: int) -> None:
        self._characters[start:end] = [""] * (end - start)

    def _keep(self, span: tuple[int, int], inside: tuple[int, int]) -> None:
        """Take out the markup around a text, but not the text."""
        if self._is_left(span[0]):
            self._remove(span[0], inside[0])
            self._remove(inside[1], span[1])

    def _template(self, template: Any) -> None:
        """Keep the visible text of a template that is known to be part of a sentence; drop any other template."""
        names = _shown_parameters(template.name.strip().lower())
        shown = next((found for name in names if (found := template.get_arg(name)) is not None), None)
        if shown is None:
            self._drop("template", *template.span)
        else:
            end = shown.span[1]
            self._keep(template.span, (end - len(shown.value), end))

    def _function(self, function: Any) -> None:
        name, _colon, number = function.string[2:-2].partition(":")
        if name.strip().lower() == "formatnum":
            start = function.span[0] + 3 + len(name)
            self._keep(function.span, (start, start + len(number)))
        else:
            self._drop("template", *function.span)

    def _link(self, link: Any) -> None:
        title = link.title.strip()
        namespace = title.partition(":")[0].strip().lower() if ":" in title else ""
        if namespace in _FILES:
            self._drop("file", *link.span)
        elif namespace in _CATEGORIES:
            self._drop("category", *link.span)
        elif link.text is not None:
            self._keep(link.span, (link.span[1] - 2 - len(link.text), link.span[1] - 2))
        elif re.fullmatch(r"[a-z]{2,3}(?:-[a-z-]+)?", namespace):
            self._drop("link to another wiki", *link.span)
        else:
            start = link.span[0] + 2
            self._keep(link.span, (start + link.title.startswith(":"), link.span[1] - 2))

    def _tag(self, tag: Any) -> None:
        start, end = tag.span
        if not self._is_left(start):
            return
        if tag.name.lower() in ("br", "hr"):
            self._remove(start, end)
            self._characters[start] = "\n"
        else:
            inside = _inside(tag, "contents")
            self._keep(tag.span, inside if inside[0] >= start else (end, end))


def _inside(node: Any, group: int | str) -> tuple[int, int]:
    """Return where the text inside a mark or a tag starts and ends in the page; negative numbers if it has none."""
    start, (first, last) = node.span[0], node._match.span(group)
    return (start + first, start + last) if first >= 0 else (-1, -1)


def _shown_parameters(name: str) -> Sequence[str]:
    """Return the parameters that may contain a template's visible text; the first one given is used."""
    if name.startswith("lang-"):
        return ("1",)
    if name.startswith(("link-", "internal link helper/")):
        return ("3", "1")
    return _SHOWN_PARAMETERS.get(name, ())
