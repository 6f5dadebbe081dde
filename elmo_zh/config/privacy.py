"""Hide tokens and lines of the text from messages, reports and pictures (`text.private`, `--private`)."""

_LONGEST_EXCERPT = 40
_HIDDEN = "not shown"
_is_private = False


def set_private(is_private: bool) -> None:
    """Set whether this process leaves the text's tokens and lines out of what it prints and draws."""
    global _is_private
    _is_private = is_private


def is_private() -> bool:
    """Return whether this process leaves the text's tokens and lines out of what it prints and draws."""
    return _is_private


def shown(text: str) -> str:
    """Return tokens for use in a message, or a note that they are not shown."""
    return _HIDDEN if _is_private else text


def excerpt(line: str) -> str:
    """Return the start of a line in quotes for use in a message, or a note that it is not shown."""
    return shown(repr(line[:_LONGEST_EXCERPT]))
