"""The unfinished output: a folder from which an interrupted dump resumes.

In the order in which they appear: `manifest.json` (text, model and settings) and `survey.json`; `text-*.hdf5`, the
tokens of consecutive lines, each with a record `text-*.json`; `packed.hdf5`, made of all of them, which has room for
the vectors of every line, and its record `counts.json`; `computed-*`, vectors that other machines have computed; then a
`part-*.json` after each part of the vectors, which says up to which line they have been written, and with carried state
a `part-*.hdf5` with the state after that line. Records have digests of the bytes that they vouch for
(`run/sealed.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from elmo_zh.embed.survey import Survey
from elmo_zh.errors import OutputError
from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.run.files import PARTS, atomic_path, read_json, remove
from elmo_zh.run.resumable import (
    as_json,
    finished_parts,
    manifest_path,
    open_parts,
    part_record,
    parts_of,
    record_part,
    remove_damaged_parts,
)
from elmo_zh.run.sealed import Region, has_its_content, read_sealed, write_sealed


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
        """Return the counts as an index records them: without backed-off tokens if there are none, as ever."""
        return {name: count for name, count in asdict(self).items() if count or name != "backed_off_tokens"}


@dataclass(frozen=True)
class Parts:
    """The folder OUTPUT.parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "Parts":
        """Return the parts of an output."""
        return cls(parts_of(output))

    def is_begun(self) -> bool:
        """Return whether the folder is that of an unfinished output."""
        return self.path.suffix == PARTS and manifest_path(self.path).is_file()

    @property
    def packed(self) -> Path:
        """The packed HDF5 file of all lines; of its vectors, those of `num_finished_lines` lines have been written."""
        return self.path / "packed.hdf5"

    def text_files(self) -> list[Path]:
        """Return the finished files of tokens, in order."""
        records = sorted(self.path.glob("text-*.json"))
        return [path for path in (record.with_suffix(".hdf5") for record in records) if path.is_file()]

    def finish_text_file(self, first_line: int) -> None:
        """Record that the file of the tokens from this line on is finished."""
        path = self.text_file(first_line)
        write_sealed(path.with_suffix(".json"), {"first_line": first_line}, [Region.whole(path)])

    def remove_text_files(self, *, from_damaged: bool = False) -> bool:
        """Remove the files of tokens, all or from the first one on that is damaged; return whether there was any."""
        paths = self.text_files()
        if from_damaged:
            paths = list(dropwhile(lambda path: has_its_content(path.with_suffix(".json")), paths))
        for path in reversed(paths):
            path.with_suffix(".json").unlink()
            path.unlink()
        return bool(paths)

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
            manifest = read_json(manifest_path(self.path))
            survey = Survey(**read_sealed(self.path / "survey.json"))
        except (FileNotFoundError, ValueError):
            return None
        return survey if manifest == as_json({"source_digest": survey.source_digest, **identity}) else None

    def open(self, manifest: Mapping[str, Any], survey: Survey, *, force: bool) -> None:
        """Create the folder, or keep what is finished in it.

        Args:
            manifest: What the vectors depend on.
            survey: The survey of the text.
            force: Start over in any case.

        Raises:
            OutputError: If the folder holds vectors of another text, model or settings.
        """
        other = "an unfinished output of another text, model or settings"
        open_parts(self.path, manifest, other, self.num_finished_lines, force=force)
        write_sealed(self.path / "survey.json", asdict(survey))

    @property
    def _counts(self) -> Path:
        return self.path / "counts.json"

    def counts(self) -> DumpCounts | None:
        """Return the counts of all lines; None before `packed` is finished.

        Raises:
            OutputError: If anything in `packed` but its vectors is damaged.
        """
        if not (self.packed.is_file() and self._counts.is_file()):
            return None
        if not has_its_content(self._counts):
            raise OutputError(
                f"{self.packed} is damaged, or of an earlier version, so it cannot be continued. --force starts over."
            )
        return DumpCounts(**read_sealed(self._counts))

    def save_counts(self, counts: DumpCounts, later: Region) -> None:
        """Write the counts of all lines, after `packed`, in which everything but this region is finished."""
        end = later.start + later.num_bytes
        finished = [Region(self.packed, 0, later.start), Region(self.packed, end, self.packed.stat().st_size - end)]
        write_sealed(self._counts, asdict(counts), finished)

    def remove_records(self) -> None:
        """Remove the records of a packed file that has been lost."""
        for path in (self._counts, *self.path.glob("part-*")):
            remove(path)

    def remove_damaged(self) -> bool:
        """Remove the records of finished parts from the first one on that is damaged; return whether there was any."""
        return remove_damaged_parts(self.path)

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the state after the latest finished part, by name; None if no part is finished."""
        finished = list(self._finished())
        if not finished:
            return None
        with h5py.File(finished[-1].with_suffix(".hdf5"), "r") as part:
            return {name: array[()] for name, array in part.items()}

    def finish_part(
        self, first_line: int, num_lines: int, written: Sequence[Region], state: Mapping[str, NDArray[Any]]
    ) -> None:
        """Record that the vectors of these lines have been written.

        Args:
            first_line: The first line.
            num_lines: How many.
            written: Where the vectors are.
            state: The state after the last one, by name; empty if none is carried.
        """
        if state:
            path = part_record(self.path, first_line).with_suffix(".hdf5")
            with atomic_path(path) as unfinished, create_hdf5(unfinished) as file:
                for name, array in state.items():
                    file.create_dataset(name, data=array)
            written = [*written, Region.whole(path)]
        record_part(self.path, first_line, num_lines, written)

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if there is nothing in it to resume from."""
        if not (if_empty and (self.text_files() or self.packed.is_file())):
            remove(self.path)


def _has_text(path: Path) -> bool:
    with h5py.File(path, "r") as file:
        return "text" in file
