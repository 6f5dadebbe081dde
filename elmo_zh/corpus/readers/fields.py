"""Fields of a record that hold text: paths of keys joined by dots, given by the user or recognised by the last key."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from elmo_zh.corpus.tally import Tally
from elmo_zh.text.han import count_han

# In order of preference, in lower case.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review", "context",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
    "评论内容", "評論內容", "评价内容", "評價內容",
)  # fmt: skip
# A known name is passed over if another known name has more than twice its Han characters, or any other field more than
# four times: it then holds numbers, captions or answers beside the text.
_MOST_TIMES_KNOWN, _MOST_TIMES_ANY = 2, 4

# Formats without fields; others may come from plug-ins.
WITHOUT_FIELDS = ("text", "html", "markdown", "wikidump")

# Reasons in a tally.
SHORT_ROWS = "rows without the column"
WITHOUT_FIELD = "records without the field"
BLANK_LINES = "blank lines between records"
# Names that a message shows at most.
_NOTED_FIELDS, _LISTED_PATHS = 5, 8


def num_without_field(tally: Tally) -> int:
    """Return the number of records and rows that did not have the field or column."""
    return tally.dropped_items[SHORT_ROWS] + tally.dropped_items[WITHOUT_FIELD]


def other_fields_note(others: Counter[str]) -> str:
    """Return the line that names the fields and columns with Chinese text that were not read."""
    names = [name for name, _ in others.most_common(_NOTED_FIELDS)]
    more = f" and {len(others) - _NOTED_FIELDS:,} more" if len(others) > _NOTED_FIELDS else ""
    return f"Not read, though they hold Chinese text: {', '.join(names)}{more}. --field NAME reads other fields."


def parse_fields(field: str) -> tuple[str, ...]:
    """Return the names in a list such as "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def choose_fields(named: str, texts: Iterable[tuple[str, str]], tally: Tally) -> list[str]:
    """Return the fields to read and note them in a tally: those that the user named, else the one that is the text.

    Args:
        named: The names given by the user, as `parse_fields` takes them; empty if none were given.
        texts: Path and value of each text at the start of a file.
        tally: Receives the fields, and the other ones with Chinese text unless the user has chosen.

    Returns:
        The paths; none if no field is certain to be the text.
    """
    paths = list(parse_fields(named))
    if not paths:
        num_han: dict[str, int] = {}
        for path, text in texts:
            num_han[path] = num_han.get(path, 0) + count_han([text])
        chosen = "" if num_han.keys() == {""} else known_field(num_han)
        if chosen is None:
            return []
        paths = [chosen]
        tally.other_fields.update(path for path, count in num_han.items() if count and path not in ("", chosen))
    tally.read_field = listed(paths)
    return paths


def known_field(num_han: Mapping[str, int]) -> str | None:
    """Return the field whose last key is a known name and that has about as much text as any other field.

    Of several the outermost is taken, then the first of the known names, then the one spelled exactly like it.

    Args:
        num_han: Number of Han characters in each field of a sample, by path.

    Returns:
        The path; None if no such field is certain to be the text.
    """
    known = [path for path in num_han if _last_key(path) in KNOWN_NAMES]
    most_known = max((num_han[path] for path in known), default=0)
    most = max(num_han.values(), default=0)
    large = [
        path
        for path in known
        if num_han[path] * _MOST_TIMES_KNOWN >= most_known and num_han[path] * _MOST_TIMES_ANY >= most
    ]
    return min(large, key=_preference, default=None)


def _last_key(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _preference(path: str) -> tuple[int, int, bool, str]:
    return path.count("."), KNOWN_NAMES.index(_last_key(path)), path != path.lower(), path


def listed(paths: Iterable[str]) -> str:
    """Return paths as messages show them; the path of a bare text is left out."""
    names = sorted(filter(None, set(paths)))
    return ", ".join(names[:_LISTED_PATHS]) + (", ..." if len(names) > _LISTED_PATHS else "") if names else ""


def strings_with_paths(record: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every text in a record, in order; lists add nothing to the path."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield ".".join(path), value
        elif isinstance(value, list):
            waiting.extend((path, item) for item in reversed(value))
        elif isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))


def texts_at(record: Any, paths: Sequence[str]) -> list[str]:
    """Return the texts of a record at the given paths, path by path; the path of a bare text is empty."""
    if len(paths) == 1 and isinstance(record, dict) and "." not in paths[0]:
        # The common case, made fast: one key whose value is a text.
        record = {paths[0]: record.get(paths[0])}
        if isinstance(value := record[paths[0]], str):
            return [value]
    found = [(path, text) for path, text in strings_with_paths(record) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]


def joined_line(texts: Sequence[str]) -> str:
    """Return the texts of a record as one line: each line end becomes a space, so that places in a text stay."""
    return " ".join(texts).replace("\n", " ").replace("\r", " ")
