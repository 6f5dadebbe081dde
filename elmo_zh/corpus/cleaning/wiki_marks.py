"""Remove remnants of wikitext from a line: links, templates, tables, headings, bold, italic and magic words."""

import re
from string import ascii_letters

_LINK = re.compile(r"\[\[([^\[\]|]*+)((?:\|[^\[\]|]*+)*)\]\]")
_NO_TEXT_NAMES = "file|image|media|category|文件|檔案|档案|图像|圖像|媒体|分类|分類"
_NO_TEXT = re.compile(rf"\s*(?:{_NO_TEXT_NAMES})\s*[:：]", re.IGNORECASE)
_ADDRESS = re.compile(r"\[(?:https?:|ftp:)?//[^\s\[\]]++(?:\s++([^\[\]]++))?\]", re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}")
# {{x}} directly after one of these characters, or with a backslash in it, is mathematics and not a template.
_MATHEMATICS = frozenset(ascii_letters + "{}^_\\)")
_TEMPLATE_START = re.compile(r"\{\{\s*(?:[^\W\d_]{2}|#)")
# {|x| < 1} and |-5| = 5 are mathematics; in a table, attributes or nothing follows.
_TABLE_LINE = re.compile(r"(?:\{\||\|-+)(?:\s+[a-z]+\s*=.*)?|\|\}", re.DOTALL | re.IGNORECASE)
_RULE_SIGNS = frozenset("|-:+ ")
# Apostrophes open emphasis before a word, not after one, as in y'' and 5''.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9'\)])('''''|'''|'')(?=[^'\s])((?:[^']|'(?!'))*)\1(?!')")
_MAGIC_WORD = re.compile(r"__(?:NO|FORCE)?(?:TOC|EDITSECTION|INDEX|TITLECONVERT|CONTENTCONVERT|TC|CC|GALLERY)__")


def without_wiki_marks(line: str) -> str:
    """Return a line without remnants of wikitext."""
    if "[" in line:
        line = _ADDRESS.sub(lambda match: match[1] or "", _LINK.sub(_shown, line))
    if "{{" in line:
        line = _without_templates(line)
    if "''" in line:
        line = _EMPHASIS.sub(r"\2", line)
    if "__" in line:
        line = _MAGIC_WORD.sub("", line)
    if "|" in line and _is_of_table(line.strip()):
        return ""
    return _heading(line) if "==" in line else line


def _is_of_table(line: str) -> bool:
    """Return whether a line starts, divides or ends a wiki table, or is the rule below the head of a Markdown table."""
    return bool(_TABLE_LINE.fullmatch(line)) or ("--" in line and _RULE_SIGNS.issuperset(line))


def _shown(match: re.Match[str]) -> str:
    """Return the text that a link shows: after the last bar, else its target; files and categories show nothing."""
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
    """Return a line without templates, also nested ones; templates without an end stay."""
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
    """Return the words of a heading (== 历史 ==)."""
    text = line.strip()
    words = text.strip("=")
    left = len(text) - len(text.lstrip("="))
    is_heading = words.strip() and 2 <= left <= 6 and text == "=" * left + words + "=" * left
    return words.strip() if is_heading and "==" not in words else line
