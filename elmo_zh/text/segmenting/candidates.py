"""Which paragraphs of a piece may be held out, on disk as JSON."""

import json
from pathlib import Path

from elmo_zh.files import write_json
from elmo_zh.text.heldout import Group, HeldoutChoice, Paragraph


def save_candidates(path: Path, choice: HeldoutChoice) -> None:
    """Write what a choice has kept."""
    groups = [
        [group.paragraph.key, group.paragraph.num_sentences, group.paragraph.num_tokens, group.copies]
        for group in choice.candidates()
    ]
    write_json(path, {"bound": choice.bound, "groups": groups})


def load_candidates(path: Path) -> tuple[int, list[Group]]:
    """Return the bound of a choice and what it had kept."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    groups = [Group(Paragraph(key, sentences, tokens), copies) for key, sentences, tokens, copies in saved["groups"]]
    return saved["bound"], groups
