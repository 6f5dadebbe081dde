"""Clean one line of a corpus: remove its markup, decide whether to drop it, and notice wrong decoding.

Markup means known HTML tags and entities, wikitext and BBCode. Marks that may be text or mathematics, as in a<b>c,
stay. Removing markup takes time proportional to the length of a line.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import html5
from string import ascii_letters

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Tally
from elmo_zh.language import N_
from elmo_zh.text.script import han_share

# Removing markup can reveal more (&amp;lt;p&amp;gt;). Real text is never nested this deep.
_MOST_LAYERS = 32

_BLOCKS = (
    "address article aside blockquote body br button caption center dd details dir div dl dt fieldset figcaption figure"
    " footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe input label legend li link main meta nav"
    " noframes noscript ol optgroup option p param pre section select source summary table tbody td textarea tfoot th"
    " thead title tr ul video audio canvas embed object script style doctype"
)
_BLOCK_NAMES = frozenset(_BLOCKS.split())
_INLINE = (
    "abbr acronym big cite code del dfn em font img ins kbd mark nobr rb rp rt rtc ruby samp small span strike strong"
    " sub sup time tt var wbr nowiki noinclude includeonly onlyinclude gallery poem ref references math"
)
# One-letter names may be mathematics (a<b>c): such tags go only with attributes, or if the line has the end tag too.
_LETTERS = "abiqsu"
_VALUE = r"""(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>=]++)"""
_ATTRIBUTE = rf"\s++(?:[a-z_:][-\w:.]*+\s*+=\s*+{_VALUE}|nowrap|checked|selected|disabled|noshade|html)"
_WORDS = f"{_BLOCKS} {_INLINE}".replace(" ", "|")
_TAG = re.compile(
    rf"</(?P<end>{_WORDS}|[{_LETTERS}])\s*+>"
    rf"|<!?(?P<start>{_WORDS})(?:{_ATTRIBUTE})*+\s*+/?>"
    rf"|<(?P<letter>[{_LETTERS}])(?P<attributes>(?:{_ATTRIBUTE})*+)\s*+>",
    re.IGNORECASE | re.ASCII,
)
_COMMENT_MARK = re.compile("<!--|-->")
# The content of these elements is not text.
_ELEMENT_TAG = re.compile(r"<(/?)(ref|math|chem|script|style)\b([^<>]*+)>", re.IGNORECASE | re.ASCII)
# &nbsp; escaped twice is &amp;nbsp;.
_ENTITY = re.compile(
    r"&(?:amp;)*(?:([a-z][a-z0-9]{1,31});|#[0-9]{1,7};|#x[0-9a-f]{1,6};|nbsp(?![a-z0-9;]))", re.IGNORECASE | re.ASCII
)

_BB_NAMES = "align backcolor center code color em email float font hide hr indent list quote size sub sup table"
_BB_NAMES += " td tr url b i s u"
_BB_TAG = re.compile(rf"\[(/?)({_BB_NAMES.replace(' ', '|')})(=[^\[\]=]{{1,200}})?\]", re.IGNORECASE | re.ASCII)
_BB_FILE = re.compile(r"\[(img|attach|media|flash)(?:=[^\[\]]{1,200})?\][^\[\]]*+\[/\1\]", re.IGNORECASE | re.ASCII)


# Every kind of markup contains one of these, written as in a character class of a regular expression.
SIGNS = r"<&\[{'=_|"


def without_markup(line: str) -> str:
    """Return a line without remnants of markup, possibly empty."""
    for _ in range(_MOST_LAYERS):
        before = line
        if "<" in line:
            line = _without_tags(line)
        if "&" in line:
            line = _ENTITY.sub(_character, line)
        line = without_wiki_marks(line)
        if "[" in line:
            line = _without_bbcode(line)
        if line == before:
            break
    return line


def _without_tags(line: str) -> str:
    if "<!--" in line:
        line = _without(line, _comments(line))
    if "</" in line:
        line = _without(line, _elements(line))
    ends = {match["end"].lower() for match in _TAG.finditer(line) if match["end"]}
    return _TAG.sub(lambda match: _instead_of_tag(match, ends), line)


def _instead_of_tag(match: re.Match[str], ends: set[str]) -> str:
    if letter := match["letter"]:
        return "" if match["attributes"] or letter.lower() in ends else match[0]
    name = (match["start"] or match["end"]).lower()
    return " " if name in _BLOCK_NAMES else ""


def _comments(line: str) -> Iterator[tuple[int, int]]:
    start = None
    for match in _COMMENT_MARK.finditer(line):
        if match[0] == "<!--":
            start = match.start() if start is None else start
        elif start is not None:
            yield start, match.end()
            start = None


def _elements(line: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each outermost element that is removed along with its content."""
    open_name, start = "", 0
    for match in _ELEMENT_TAG.finditer(line):
        name = match[2].lower()
        if not match[1] and not open_name and not match[3].endswith("/"):
            open_name, start = name, match.start()
        elif match[1] and name == open_name:
            yield start, match.end()
            open_name = ""


def _without(line: str, spans: Iterator[tuple[int, int]]) -> str:
    kept, end = [], 0
    for start, next_end in spans:
        kept.append(line[end:start])
        end = next_end
    return "".join([*kept, line[end:]])


def _character(match: re.Match[str]) -> str:
    """Return the character that an entity stands for; unknown names are left unchanged."""
    name = match[1]
    if name is None:
        return html.unescape("&" + match[0].rpartition("amp;")[2].removeprefix("&"))
    return html5.get(f"{name};", match[0])


def _without_bbcode(line: str) -> str:
    line = _BB_FILE.sub("", line)
    if "[/" not in line and "=" not in line and "[hr]" not in line:
        return line
    ends = {match[2].lower() for match in _BB_TAG.finditer(line) if match[1]}
    return _BB_TAG.sub(lambda match: "" if _is_bb_tag(match, ends) else match[0], line)


def _is_bb_tag(match: re.Match[str], ends: set[str]) -> bool:
    """Return whether a match is a tag rather than a bracketed word or an index such as a[i]."""
    return bool(match[1] or match[3]) or match[2].lower() in ends or match[2].lower() == "hr"


# Chinese wikis give a word for each variant: -{zh-hans:软件;zh-hant:軟體}-, with optional flags before a bar.
_VARIANTS = re.compile(r"-\{(?:([A-Za-z;+\-\s]*)\|)?([^{}]*)\}-")
_VARIANT = re.compile(r"\s*(zh(?:-[a-z]+)?)\s*:\s*((?:&[#\w]{1,9};|[^;])*)", re.IGNORECASE)
_PREFERRED = ("zh-cn", "zh-hans", "zh-sg", "zh-my", "zh")


def without_variants(text: str) -> str:
    """Return wikitext with -{zh-hans:软件;zh-hant:軟體}- replaced by its word in simplified Chinese, if possible."""
    return _VARIANTS.sub(_one_variant, text) if "-{" in text else text


def _one_variant(match: re.Match[str]) -> str:
    flags, body = (match[1] or "").strip().upper(), str(match[2])
    if "H" in flags or flags in ("T", "-"):
        return ""
    variants = {name.lower(): word.strip() for name, word in _VARIANT.findall(body)}
    if not variants:
        return body
    return str(next((variants[name] for name in _PREFERRED if name in variants), next(iter(variants.values()))))


_LINK = re.compile(r"\[\[([^\[\]|]*+)((?:\|[^\[\]|]*+)*)\]\]")
_NO_TEXT_NAMES = "file|image|media|category|文件|檔案|档案|图像|圖像|媒体|分类|分類"
_NO_TEXT = re.compile(rf"\s*(?:{_NO_TEXT_NAMES})\s*[:：]", re.IGNORECASE)
_ADDRESS = re.compile(r"\[(?:https?:|ftp:)?//[^\s\[\]]++(?:\s++([^\[\]]++))?\]", re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}")
# {{x}} directly after one of these characters, or with a backslash in it, is mathematics and not a template.
_MATHEMATICS = frozenset(ascii_letters + "{}^_\\)")
_TEMPLATE_START = re.compile(r"\{\{\s*(?:[^\W\d_]{2}|#)")
# {|x| < 1} and |-5| = 5 are mathematics; in a table, only attributes may follow the mark.
_TABLE_LINE = re.compile(r"(?:\{\||\|-+)(?:\s+[a-z]+\s*=.*)?|\|\}", re.DOTALL | re.IGNORECASE)
_RULE_SIGNS = frozenset("|-:+ ")
# Apostrophes open emphasis before a word, not after one, as in y'' and 5''.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9'\)])('''''|'''|'')(?=[^'\s])((?:[^']|'(?!'))*)\1(?!')")
_MAGIC_WORD = re.compile(r"__(?:NO|FORCE)?(?:TOC|EDITSECTION|INDEX|TITLECONVERT|CONTENTCONVERT|TC|CC|GALLERY)__")


def without_wiki_marks(line: str) -> str:
    """Return a line without remnants of wikitext; a line with only the marks of a table becomes empty."""
    if "[" in line:
        line = _ADDRESS.sub(lambda match: match[1] or "", _LINK.sub(_shown, line))
    if "{{" in line:
        line = _without_templates(line)
    if "-{" in line and ("zh" in line or "|" in line):
        line = without_variants(line)
    if "''" in line:
        line = _EMPHASIS.sub(r"\2", line)
    if "__" in line:
        line = _MAGIC_WORD.sub("", line)
    if "|" in line and _is_of_table(line.strip()):
        return ""
    return _heading(line) if "==" in line else line


def _is_of_table(line: str) -> bool:
    """Return whether a line starts, divides or ends a wiki table, or is the rule below a Markdown table's header."""
    return bool(_TABLE_LINE.fullmatch(line)) or ("--" in line and _RULE_SIGNS.issuperset(line))


def _shown(match: re.Match[str]) -> str:
    """Return a link's visible text, empty for files and categories; lists such as [[1, 2]] are returned unchanged."""
    target, others = match[1], match[2]
    if _NO_TEXT.match(target):
        return ""
    if not others:
        # [[1, 2], ...] and [[]] are lists.
        return target.removeprefix(":") if target.strip() and not _is_list(target) else match[0]
    return others.rpartition("|")[2]


def _is_list(target: str) -> bool:
    return "," in target or target.strip().isdecimal()


def _without_templates(line: str) -> str:
    """Return a line without templates, nested ones included; unclosed templates are left in."""
    kept: list[str] = []
    opened: list[int] = []
    end = 0
    for match in _BRACES.finditer(line):
        if match[0] == "{{":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            # A template may directly follow another one, after its brace.
            follows_another = bool(kept) and start == end
            if not opened and _is_template(line, start, match.end(), follows_another=follows_another):
                kept.append(line[end:start])
                end = match.end()
    return "".join([*kept, line[end:]])


def _is_template(line: str, start: int, end: int, *, follows_another: bool) -> bool:
    if start and not follows_another and line[start - 1] in _MATHEMATICS:
        return False
    return _TEMPLATE_START.match(line, start) is not None and line.find("\\", start, end) < 0


def _heading(line: str) -> str:
    text = line.strip()
    words = text.strip("=")
    left = len(text) - len(text.lstrip("="))
    is_heading = words.strip() and 2 <= left <= 6 and text == "=" * left + words + "=" * left
    return words.strip() if is_heading and "==" not in words else line


# Reasons why a line is dropped, as they appear in records and reports.
EMPTY = N_("lines without a word")
TOO_LONG = N_("lines too long")
ONLY_MARKUP = N_("lines of markup only")
LITTLE_CHINESE = N_("lines with too little Chinese")
# Why a kept line may deserve a look, and how it was cleaned.
GARBLED = "lines that look wrongly decoded"
CLEANED = "lines cleaned by text.remove_markup"
# The Windows-1252 characters for bytes 0x80 to 0x9F; the Latin-1 ones for 0x80 to 0xBF, without the middle dot of
# Chinese names.
_OTHER = "\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019\u201c\u201d"
_OTHER += "\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178"
_LATIN = "\x80-\xb6\xb8-\xbf"
# GB18030 read as Latin-1: a run that occurs in no language, without the signs for degrees and multiplication.
_RUN = "[\xa1-\xaf\xb1-\xb6\xb8-\xd6\xd8-\xf6\xf8-\xfe]{6}"
# UTF-8 read as Latin-1: the three bytes of a Chinese character, at least one of which is foreign to Chinese text; the
# two of an accented letter; the three of a quote.
_GARBLED = re.compile(
    f"[\xe0-\xef](?:[{_LATIN}][{_LATIN}{_OTHER}]|[{_OTHER}][{_LATIN}])|\xc3[\xa0-\xb6\xb8-\xbf]|\xe2\u20ac|{_RUN}"
)
# UTF-8 read as GB18030: full-width punctuation begins with the first of these; 、, 。 and brackets with the second.
_OF_GB18030 = ("\u951b", "\u9286")
_LOST = "锟斤拷"
# Everything that looks garbled contains one of these.
MOJIBAKE_SIGNS = f"\xa1-\xb6\xb8-\xff{_LOST[0]}{''.join(_OF_GB18030)}"
# Few lines contain one of these characters, and one search for all of them is faster than several.
_SUSPECT = re.compile(f"[{SIGNS}{MOJIBAKE_SIGNS}]")


@dataclass(frozen=True)
class LineCleaner:
    """Cleans or drops the lines of a corpus according to the settings."""

    max_characters: int
    removes_markup: bool
    min_han_share: float

    @classmethod
    def build(cls, config: TextConfig) -> "LineCleaner":
        """Return the cleaner that the settings describe."""
        return cls(
            max_characters=config.max_line_characters,
            removes_markup=config.remove_markup,
            min_han_share=config.min_han_share,
        )

    def clean(self, line: str, tally: Tally) -> str | None:
        """Return the cleaned line, or None after counting a dropped one; the caller counts kept lines."""
        if self.max_characters and len(line) > self.max_characters:
            tally.drop_line(TOO_LONG, line)
            return None
        text = line
        if _SUSPECT.search(line):
            if looks_garbled(line):
                tally.notice(GARBLED)
            if self.removes_markup and (cleaned := without_markup(text)) != text:
                text = cleaned
                tally.notice(CLEANED)
            if line.strip() and not text.strip():
                tally.drop_line(ONLY_MARKUP, line)
                return None
        # A line without any word is counted as such later.
        if self.min_han_share and text.strip() and han_share(text) < self.min_han_share:
            tally.drop_line(LITTLE_CHINESE, line)
            return None
        return text


def looks_garbled(line: str) -> bool:
    """Return whether a line looks wrongly decoded; a line about wrong decoding looks the same."""
    return bool(_GARBLED.search(line)) or _LOST in line or _was_read_as_gb18030(line)


def _was_read_as_gb18030(line: str) -> bool:
    return sum(map(line.count, _OF_GB18030)) >= 2
