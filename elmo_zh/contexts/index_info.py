"""index.json of an index, and the checks of what it says of the other files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_zh.contexts.layout import INDEX_FORMAT, IndexLayout
from elmo_zh.corpus.input_texts import Members
from elmo_zh.errors import OutputError
from elmo_zh.invocation import command, program
from elmo_zh.run.files import read_json

# Digits of a model's digest in a message.
_SHOWN_DIGITS = 12


def load_info(folder: Path) -> dict[str, Any]:
    """Read index.json.

    Raises:
        OutputError: If the folder is no index, or the index is damaged or of another version.
    """
    path = IndexLayout(folder).info
    if folder.is_file():
        raise OutputError(_explain_file(folder))
    if not path.is_file():
        raise OutputError(
            f"{folder} is no index: {path.name} is missing. Make one with: {program()} index TEXT --output INDEX"
        )
    try:
        info = read_json(path)
        number = info["format"]
    except (ValueError, KeyError, TypeError):
        raise damaged(path) from None
    if number not in (1, INDEX_FORMAT):
        raise OutputError(
            f"{path} has format {number}, expected {INDEX_FORMAT}. Make the index again with this version of elmo-zh."
        )
    if not _is_sound(info):
        raise damaged(path)
    if number == 1 and info["settings"].get("split_sentences"):
        raise OutputError(
            f"{path} has format 1, which does not know where its sentences begin in their lines, expected"
            f" {INDEX_FORMAT}. Make the index again with this version of elmo-zh."
        )
    return dict(info)


def _explain_file(path: Path) -> str:
    """Return the message for a file where the folder of an index is expected: most often a text."""
    if IndexLayout(path.parent).info.is_file():
        return f"{path} is a file of an index. Give its folder: {path.parent}"
    making = command("index", path, "--split-sentences", "--output", path.with_suffix(".index").name)
    return f"{path} is a file, not the folder of an index. If it is a text, make its index with: {making}"


def _is_sound(info: Any) -> bool:
    """Return whether index.json has all values that are used, each of the right type."""
    try:
        counts = [info["counts"][name] for name in ("words", "kept_lines", "occurrences")]
        numbers = [*counts, *info["settings"]["layers"], *info["bytes"].values(), info["dimension"]]
        names = [*(info["model"][name] for name in ("path", "model_digest", "precision", "unknown"))]
        names += [text["name"] for text in info["texts"]]
        for text in info["texts"]:
            Members.restored(text.get("members", []))
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
    are_numbers = all(type(number) is int and 0 <= number < 2**62 for number in numbers)
    return are_numbers and min(counts) > 0 and all(isinstance(name, str) for name in names)


def check_sizes(layout: IndexLayout, info: dict[str, Any], layers: Sequence[int]) -> None:
    """Raise OutputError if a file is missing or its size is not the recorded one, before any is read."""
    for path in layout.files(layers):
        if not path.is_file():
            raise OutputError(f"{path} is missing. Make the index again.")
        expected, found = info["bytes"].get(path.name), path.stat().st_size
        if expected is None:
            raise damaged(layout.info)
        if found != expected:
            raise OutputError(
                f"{path} has {found:,} bytes, expected {expected:,}. It is damaged: make the index again."
            )


def damaged(path: Path) -> OutputError:
    """Return the error for a file of an index whose content cannot be right."""
    return OutputError(f"{path} is damaged. Make the index again.")


def explain_other_model(index: Path, made_with: Mapping[str, str], digest: str, path: Path) -> str:
    """Return the message that an index was made with another model.

    Args:
        index: The folder of the index.
        made_with: What index.json says of its model.
        digest: Digest of the other one.
        path: The folder of that.
    """
    own, other = (each.removeprefix("sha256:")[:_SHOWN_DIGITS] for each in (made_with["model_digest"], digest))
    return (
        f"{index} was made with the model {made_with['path']} ({own}), but {path} is another one ({other}). Give that"
        " model with --model, or make the index again with: index"
    )
