"""Paragraphs that may be held out, on disk as JSON lines: first the bound, then a text a line."""

import json
from collections.abc import Iterator
from pathlib import Path

from elmo_zh.files import written_once
from elmo_zh.text.heldout import Group, HeldoutChoice, Paragraph


def save_candidates(path: Path, choice: HeldoutChoice) -> None:
    """Write what a choice has kept."""
    with written_once(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{choice.bound}\n")
        for group in choice.candidates():
            paragraph = group.paragraph
            entry = [paragraph.key, group.copies, paragraph.num_tokens, paragraph.sentences]
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def load_candidates(path: Path) -> tuple[int, list[Group]]:
    """Return the bound of a choice and what it had kept."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return int(next(file)), list(_iter_groups(file))


def _iter_groups(lines: Iterator[str]) -> Iterator[Group]:
    for line in lines:
        key, copies, num_tokens, sentences = json.loads(line)
        yield Group(Paragraph(key=key, sentences=tuple(sentences), num_tokens=num_tokens), copies)
