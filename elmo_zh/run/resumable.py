"""An output that an interrupted command resumes: reserved while it is written, with `OUTPUT.parts` beside it.

The folder `OUTPUT.parts` holds `manifest.json`, which says what the work depends on, and a `part-*.json` after each
finished part of consecutive lines, with a digest of the bytes that it vouches for (`run/sealed.py`).
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from elmo_zh.errors import OutputError
from elmo_zh.run.files import PARTS, claimed_output, read_json, remove, write_json

__all__ = ["claimed_output"]


def parts_of(output: Path) -> Path:
    """Return the folder of an output's unfinished work."""
    return output.with_name(output.name + PARTS)


def manifest_path(folder: Path) -> Path:
    """Return the file that says what the unfinished work in a folder depends on."""
    return folder / "manifest.json"


def open_parts(
    folder: Path,
    manifest: Mapping[str, Any],
    holds: str,
    count_work: Callable[[], int],
    *,
    force: bool,
    discard: Callable[[], object] | None = None,
) -> None:
    """Create the folder of unfinished work, or keep what is finished in it if it depends on the same.

    Args:
        folder: The folder.
        manifest: What the work depends on.
        holds: What another manifest makes of the content, for the message: "an unfinished output of another text".
        count_work: Returns how much of it is finished, and would be lost.
        force: Start over in any case.
        discard: Removes what cannot be used; default the whole folder.
    """
    is_same = _holds_json(manifest_path(folder), manifest)
    if not is_same and not force and count_work():
        raise OutputError(f"{folder} holds {holds}. Give the same ones to continue it, or --force to start over.")
    if force or not is_same:
        (discard or (lambda: remove(folder)))()
    write_json(manifest_path(folder), manifest)


def _holds_json(path: Path, value: Mapping[str, Any]) -> bool:
    try:
        return bool(read_json(path) == as_json(value))
    except (FileNotFoundError, ValueError):
        return False


def as_json(value: Mapping[str, Any]) -> Any:
    """Return a value as it is read again from JSON."""
    return json.loads(json.dumps(value))
