"""Habits of style that docs, messages and docstrings must not have; codespell checks spelling in `make check`."""

import ast
import re

from contract.command_line import ROOT

HABITS = re.compile(
    r"(?:^|[.!?|] +)Of (?!course)|(?:^|[.!|] +)What [^.?|]+[.|]|\b(?:that|those) of\b|\b(?:is|are) (?:none|told)\b"
    r"|\bstoreys?\b|\bwhereof\b|\bof (?:your|another|one) field\b",
    re.MULTILINE,
)


def test_nothing_that_users_or_contributors_read_has_a_habit_of_style():
    names = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    # Generated pages repeat messages, and the log and the changes are records.
    pages = [each for each in names if each.name not in ("commands.md", "settings.md", "log.md", "CHANGELOG.md")]
    texts = {str(path): re.sub(r"```.*?```|`[^`]*`", "", path.read_text("utf-8"), flags=re.DOTALL) for path in pages}
    for path in ROOT.glob("elmo_zh/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                texts[f"{path} {getattr(node, 'name', '')}"] = text
    found = [(name, match[0]) for name, text in texts.items() for match in HABITS.finditer(" ".join(text.split("\n")))]
    assert len(texts) > 2_000
    assert not found
