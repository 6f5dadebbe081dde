"""Wikitext to prose: without templates, tables, references, files and categories."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from elmo_zh.text.readers.lines import lines_of
from elmo_zh.text.readers.tally import Tally

# Namespaces whose links are no prose, in the words of the Chinese Wikipedia and in English.
_FILES = ("file", "image", "文件", "檔案", "档案", "图像", "圖像", "媒体", "media")
_CATEGORIES = ("category", "分类", "分類")
_DROPPED_TAGS = frozenset(
    ("ref", "references", "table", "gallery", "math", "chem", "score", "timeline", "imagemap", "syntaxhighlight",
     "source", "templatedata", "graph", "mapframe", "style", "script", "noinclude", "includeonly", "templatestyles")
)  # fmt: skip
# Chinese wikis spell a word for each variant: -{zh-hans:软件;zh-hant:軟體}-. Flags stand before a bar.
_VARIANTS = re.compile(r"-\{(?:([^{}|]*)\|)?([^{}]*)\}-")
_VARIANT = re.compile(r"\s*(zh(?:-[a-z]+)?)\s*:\s*([^;]*)", re.IGNORECASE)
_PREFERRED = ("zh-cn", "zh-hans", "zh-sg", "zh-my", "zh")
_EMPTY_BRACKETS = re.compile(r"（[\s，、；,;]*）|\([\s，、；,;]*\)")


def wikitext_lines(source: str, tally: Tally) -> Iterator[str]:
    """Yield the lines of prose of a page; what is left out is counted by the kind of markup."""
    import mwparserfromhell

    plain = _VARIANTS.sub(lambda match: _one_variant(match, tally), source)
    prose = "".join(_prose(mwparserfromhell.parse(plain), tally))
    shown = _EMPTY_BRACKETS.sub("", prose)
    if len(shown) < len(prose):
        tally.drop("wikitext: brackets around markup", len(prose) - len(shown))
    yield from lines_of(shown)


def _one_variant(match: re.Match[str], tally: Tally) -> str:
    flags, body = (match[1] or "").strip().upper(), match[2]
    variants = {name.lower(): word.strip() for name, word in _VARIANT.findall(body)}
    if "H" in flags or flags in ("T", "-"):
        chosen = ""
    elif variants:
        chosen = next((variants[name] for name in _PREFERRED if name in variants), next(iter(variants.values())))
    else:
        chosen = body
    tally.drop("wikitext: other variants", len(match[0]) - len(chosen))
    return chosen


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


def _heading(node: Any, tally: Tally) -> Iterator[str]:
    yield from _prose(node.title, tally)


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
    """Yield the words that templates for foreign words show; other templates are no prose."""
    name = str(node.name).strip().lower()
    shown = "2" if name == "lang" else "1"
    if (name in ("lang", "le") or name.startswith(("lang-", "link-"))) and node.has(shown):
        yield from _prose(node.get(shown).value, tally)
    else:
        yield from _dropped(node, "template", tally)


def _entity(node: Any, _tally: Tally) -> Iterator[str]:
    yield node.normalize()


_READERS: dict[str, Callable[[Any, Tally], Iterator[str]]] = {
    "Heading": _heading,
    "Wikilink": _link,
    "ExternalLink": _external_link,
    "Tag": _tag,
    "Template": _template,
    "HTMLEntity": _entity,
}
