"""Turn wikitext into prose, without templates, tables, references, files and categories."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from elmo_zh.corpus.cleaning.markup import without_variants
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.tally import Tally

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
_EMPTY_BRACKETS = re.compile(r"（[\s，、；,;]*）|\([\s，、；,;]*\)")


# Beyond this depth the parser treats markup as text, after trying to parse it.
_DEEPEST = 40
_ALONE = frozenset(("br", "hr", "wbr", "img", "meta", "link", "li", "dt", "dd", "td", "th", "tr"))
_MARK = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|\[(?=[a-z/]{2,9}[:/])|\]|<!--|-->|</?[a-zA-Z]+(?=[\s/>])(?:[^<>]{0,300}?/>)?"
)
_CLOSES = {"}}": "{{", "]]": "[[", "|}": "{|", "]": "[", "-->": "<!--"}


def wikitext_lines(source: str, tally: Tally) -> Iterator[str]:
    """Yield the lines of a page's prose, and count the rest of the page by kind of markup."""
    import mwparserfromhell

    page = _without_open_comment(source, tally)
    if len(page) > LONGEST_WIKITEXT:
        tally.drop("wikitext: page longer than MediaWiki allows", len(page))
        return
    page = _DEEP_ITEM.sub("", page)
    if num_unclosed(page) * len(page) > MOST_UNCLOSED_WORK:
        tally.drop("wikitext: page with unclosed markup", len(page))
        return
    plain = without_variants(page)
    if len(plain) < len(page):
        tally.drop("wikitext: other Chinese variants", len(page) - len(plain))
    prose = "".join(_prose(mwparserfromhell.parse(plain), tally))
    shown = _SWITCH.sub("", prose)
    if len(shown) < len(prose):
        tally.drop("wikitext: behavior switch", len(prose) - len(shown))
    prose, shown = shown, _EMPTY_BRACKETS.sub("", shown)
    if len(shown) < len(prose):
        tally.drop("wikitext: brackets left empty", len(prose) - len(shown))
    yield from lines_of(shown)


def _without_open_comment(source: str, tally: Tally) -> str:
    """Return a page up to a comment that is never closed, which MediaWiki treats as reaching to the end."""
    start = source.find("<!--", source.rfind("-->") + 1)
    if start < 0:
        return source
    tally.drop("wikitext: comment", len(source) - start)
    return source[:start]


def num_unclosed(source: str) -> int:
    """Count the marks that are nested too deeply, closed out of order or never closed, which can slow down parsing."""
    num_unclosed = 0
    opened: list[str] = []
    depths: Counter[str] = Counter()
    for kind, is_end in _marks(source):
        if not is_end:
            num_unclosed += len(opened) >= _DEEPEST
            opened.append(kind)
            depths[kind] += 1
        elif depths[kind]:
            while (inner := opened.pop()) != kind:
                depths[inner] -= 1
                num_unclosed += 1
            depths[kind] -= 1
    return num_unclosed + len(opened)


def _marks(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each opening or closing mark, and whether it closes."""
    for match in _MARK.finditer(source):
        mark = match[0]
        if mark in _CLOSES:
            yield _CLOSES[mark], True
        elif not mark.startswith("<") or mark == "<!--":
            yield mark, False
        elif not mark.endswith("/>") and (tag := mark.strip("</").lower()) not in _ALONE:
            yield tag, mark.startswith("</")


def _prose(code: Any, tally: Tally) -> Iterator[str]:
    for node in code.nodes:
        kind = type(node).__name__
        if kind == "Text":
            yield node.value
        elif kind in _READERS:
            yield from _READERS[kind](node, tally)
        else:
            yield from _dropped(node, kind.lower(), tally)


def _dropped(node: Any, kind: str, tally: Tally) -> Iterator[str]:
    tally.drop(f"wikitext: {kind}", len(str(node)))
    return iter(())


def _link(node: Any, tally: Tally) -> Iterator[str]:
    title = str(node.title).strip()
    namespace = title.partition(":")[0].strip().lower() if ":" in title else ""
    if namespace in _FILES:
        yield from _dropped(node, "file", tally)
    elif namespace in _CATEGORIES:
        yield from _dropped(node, "category", tally)
    elif node.text is not None:
        yield from _prose(node.text, tally)
    elif re.fullmatch(r"[a-z]{2,3}(?:-[a-z-]+)?", namespace):
        yield from _dropped(node, "link to another wiki", tally)
    else:
        yield title.removeprefix(":")


def _external_link(node: Any, tally: Tally) -> Iterator[str]:
    if node.title is None:
        yield from _dropped(node, "address", tally)
    else:
        yield from _prose(node.title, tally)


def _tag(node: Any, tally: Tally) -> Iterator[str]:
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS:
        yield from _dropped(node, name, tally)
    elif name in ("br", "hr"):
        yield "\n"
    elif node.contents is not None:
        yield from _prose(node.contents, tally)


def _template(node: Any, tally: Tally) -> Iterator[str]:
    """Yield the visible text of templates that are part of a sentence; other templates are not prose."""
    name = str(node.name).strip().lower()
    function, _, number = name.partition(":")
    shown = next((each for each in _shown_parameters(name) if node.has(each)), None)
    if shown:
        yield from _prose(node.get(shown).value, tally)
    elif function == "formatnum":
        yield number.strip()
    else:
        yield from _dropped(node, "template", tally)


def _shown_parameters(name: str) -> Sequence[str]:
    """Return the parameters that may contain a template's visible text; the first one given is used."""
    if name.startswith("lang-"):
        return ("1",)
    if name.startswith(("link-", "internal link helper/")):
        return ("3", "1")
    return _SHOWN_PARAMETERS.get(name, ())


_READERS: dict[str, Callable[[Any, Tally], Iterator[str]]] = {
    "Heading": lambda node, tally: _prose(node.title, tally),
    "Wikilink": _link,
    "ExternalLink": _external_link,
    "Tag": _tag,
    "Template": _template,
    "HTMLEntity": lambda node, _tally: iter((node.normalize(),)),
}
