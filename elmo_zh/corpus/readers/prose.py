"""What markup languages have in common: where a line break in the source is no space."""

import re

# Chinese is written without spaces, so a break between two Chinese characters is one of the source only.
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_BREAK_IN_CHINESE = re.compile(rf"(?<={_CHINESE})[ \t]*\r?\n[ \t\r\n]*(?={_CHINESE})")
_SPACE = re.compile(r"[ \t\r\n\f]+")


def joined(text: str) -> str:
    """Return the text of a block of markup as one line."""
    return _SPACE.sub(" ", _BREAK_IN_CHINESE.sub("", text)).strip(" ")
