"""The unfinished output: a folder from which an interrupted dump resumes.

In the order in which they appear: `manifest.json` (text, model and settings) and `survey.json`; `text-*.hdf5`, the
tokens of consecutive lines; `counts.json` and `packed.hdf5`, made of all of them, which has room for the vectors of
every line; `computed-*`, vectors that other machines have computed; a `part-*.json` after each part of the vectors,
which says up to which line they have been written, and with carried state a `part-*.hdf5` with the state after that
line.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from elmo_zh.embed.survey import Survey
from elmo_zh.errors import OutputError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.run.files import atomic_path, remove, write_json


@dataclass(kw_only=True)
class DumpCounts:
    """Counts of what a dump holds.

    Attributes:
        lines: Number of lines.
        empty_lines: Lines without a token.
        tokens: Number of tokens.
        unknown_tokens: Tokens outside the vocabulary.
        cut_tokens: Tokens longer than the character slots.
        backed_off_tokens: Unknown tokens that were read as their parts (--unknown backoff).
    """

    lines: int = 0
    empty_lines: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    cut_tokens: int = 0
    backed_off_tokens: int = 0

    def add(self, other: "DumpCounts") -> None:
        """Add the counts of another dump."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    def recorded(self) -> dict[str, int]:
        """Return the counts as a shard records them: without backed-off tokens if there are none, as ever."""
        return {name: count for name, count in asdict(self).items() if count or name != "backed_off_tokens"}


@dataclass(frozen=True)
class Parts:
    """The folder OUTPUT.parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "Parts":
        """Return the parts of an output."""
        return cls(output.with_name(output.name + ".parts"))

    def is_begun(self) -> bool:
        """Return whether the folder is that of an unfinished output."""
        return self.path.suffix == ".parts" and (self.path / "manifest.json").is_file()

    @property
    def packed(self) -> Path:
        """The packed HDF5 file of all lines; of its vectors, those of `num_finished_lines` lines have been written."""
        return self.path / "packed.hdf5"

    def text_files(self) -> list[Path]:
        """Return the finished files of tokens, in order."""
        return sorted(self.path.glob("text-*.hdf5"))

    def text_file(self, first_line: int) -> Path:
        """Return the path of the tokens from this line on."""
        return self.path / f"text-{first_line:012d}.hdf5"

    def have_text(self) -> bool:
        """Return whether the raw text of every line is kept; unfinished outputs of earlier versions lack it."""
        return all(map(_has_text, [self.packed] if self.packed.is_file() else self.text_files()))

    def disk_bytes(self) -> int:
        """Return how much disk space the folder takes up."""
        return sum(path.stat().st_blocks * 512 for path in self.path.glob("*"))

    def num_finished_lines(self) -> int:
        """Return how many lines have their vectors."""
        return sum(self._finished().values())

    def _finished(self) -> dict[Path, int]:
        """Return the records of the finished parts in order, each with its number of lines, up to the first gap."""
        return finished_parts(self.path, self._first_line()) if self.packed.is_file() else {}

    def _first_line(self) -> int:
        with h5py.File(self.packed, "r") as file:
            return int(file.attrs["first_line"])

    def survey(self, identity: Mapping[str, Any]) -> Survey | None:
        """Return the survey of the text; None if there is none for this model and these settings.

        Args:
            identity: The manifest without the digest of the text.
        """
        try:
            manifest = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
            survey = Survey(**json.loads((self.path / "survey.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        return survey if manifest == _as_json({"source_digest": survey.source_digest, **identity}) else None

    def open(self, manifest: Mapping[str, Any], survey: Survey, *, force: bool) -> None:
        """Create the folder, or keep what is finished in it.

        Args:
            manifest: What the vectors depend on.
            survey: The survey of the text.
            force: Start over in any case.

        Raises:
            OutputError: If the folder holds vectors of another text, model or settings.
        """
        known = self.path / "manifest.json"
        is_same = known.is_file() and json.loads(known.read_text(encoding="utf-8")) == _as_json(manifest)
        if not is_same and not force and self.num_finished_lines():
            raise OutputError(
                f"{self.path} holds an unfinished output of another text, model or settings."
                " Give the same ones to continue it, or --force to start over."
            )
        if force or not is_same:
            remove(self.path)
        write_json(known, manifest)
        write_json(self.path / "survey.json", asdict(survey))

    def counts(self) -> DumpCounts | None:
        """Return the counts of all lines; None before `packed` exists."""
        if not self.packed.is_file():
            return None
        return DumpCounts(**json.loads((self.path / "counts.json").read_text(encoding="utf-8")))

    def save_counts(self, counts: DumpCounts) -> None:
        """Write the counts of all lines, before `packed` is written."""
        write_json(self.path / "counts.json", asdict(counts))

    def remove_records(self) -> None:
        """Remove the records of parts whose packed file has been lost."""
        for path in self.path.glob("part-*"):
            remove(path)

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the state after the latest finished part, by name; None if no part is finished."""
        finished = list(self._finished())
        if not finished:
            return None
        with h5py.File(finished[-1].with_suffix(".hdf5"), "r") as part:
            return {name: array[()] for name, array in part.items()}

    def finish_part(self, first_line: int, num_lines: int, state: Mapping[str, NDArray[Any]]) -> None:
        """Record that the vectors of these lines have been written.

        Args:
            first_line: The first line.
            num_lines: How many.
            state: The state after the last one, by name; empty if none is carried.
        """
        if state:
            record = part_record(self.path, first_line)
            with atomic_path(record.with_suffix(".hdf5")) as unfinished, create_hdf5(unfinished) as file:
                for name, array in state.items():
                    file.create_dataset(name, data=array)
        record_part(self.path, first_line, num_lines)

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if there is nothing in it to resume from."""
        if not (if_empty and (self.text_files() or self.packed.is_file())):
            remove(self.path)


def _has_text(path: Path) -> bool:
    with h5py.File(path, "r") as file:
        return "text" in file


def finished_parts(folder: Path, first_line: int) -> dict[Path, int]:
    """Return the records of finished parts in order, each with its number of lines, up to the first gap.

    Args:
        folder: The folder of the parts.
        first_line: The line with which the first part starts.
    """
    finished: dict[Path, int] = {}
    for record in sorted(folder.glob("part-*.json")):
        part = json.loads(record.read_text(encoding="utf-8"))
        if part["first_line"] != first_line:
            break
        finished[record] = part["num_lines"]
        first_line += part["num_lines"]
    return finished


def record_part(folder: Path, first_line: int, num_lines: int) -> None:
    """Record that a part of so many lines from this one on is finished."""
    write_json(part_record(folder, first_line), {"first_line": first_line, "num_lines": num_lines})


def computed_part(first_line: int, num_lines: int) -> str:
    """Return the name of the part of these lines that a worker computes, which leaves its vectors as a file."""
    return f"computed-{first_line:012d}-{num_lines}"


def part_record(folder: Path, first_line: int) -> Path:
    """Return the path of the record of the part that starts with this line."""
    return folder / f"part-{first_line:012d}.json"


def _as_json(value: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(value))
