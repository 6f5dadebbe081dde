"""Train, dev and test as names of files and columns of labelled data have them."""

from collections.abc import Sequence

from elmo_zh.errors import CorpusError

# Words for the parts of data; testa and testb are CoNLL's.
PART_WORDS = {
    "train": {"train", "training", "trainset"},
    "dev": {"dev", "devel", "devset", "val", "valid", "validation", "valset", "validset", "eval", "testa"},
    "test": {"test", "testing", "testset", "testb"},
}


def part_named(word: str) -> str:
    """Return the part that a word in lower case stands for; "" if for none."""
    return next((part for part, words in PART_WORDS.items() if word in words), "")


def column_of_parts(rows: Sequence[Sequence[str]], used: Sequence[int], width: int) -> int | None:
    """Return an unused column that says train, dev or test in each row; None if there is none."""
    for column in range(width):
        cells = [row[column].strip().lower() for row in rows if column < len(row)]
        if column not in used and cells and all(map(part_named, cells)):
            return column
    return None


def part_of(name: str, number: int, cell: str | None) -> str:
    """Return the part that a cell names where other rows name one."""
    part = part_named((cell or "").strip().lower())
    if not part:
        raise CorpusError(
            f"{name}: row {number} has {(cell or '')[:40]!r} where other rows say train, dev or test. Correct it, or"
            " remove that column."
        )
    return part
