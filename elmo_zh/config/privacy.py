"""Whether messages, reports and pictures may show tokens and lines of the text (`text.private`, `--private`)."""

_LONGEST_EXCERPT = 40
_HIDDEN = "not shown"
_is_private = False


def set_private(is_private: bool) -> None:
    """Set whether this process keeps tokens and lines of the text out of what people read."""
    global _is_private
    _is_private = is_private


def is_private() -> bool:
    """Return whether tokens and lines of the text are kept out of what people read."""
    return _is_private


def shown(text: str) -> str:
    """Return tokens of the text for a message, or that they are not shown."""
    return _HIDDEN if _is_private else text


def excerpt(line: str) -> str:
    """Return the start of a line in quotes for a message, or that it is not shown."""
    return shown(repr(line[:_LONGEST_EXCERPT]))
