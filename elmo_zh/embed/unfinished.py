"""The unfinished output: a folder of closed files, each with its record, from which a stopped dump goes on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from elmo_zh.embed.blocks import Contents, LineBlock
from elmo_zh.embed.formats import OutputForm, hdf5_packed
from elmo_zh.errors import OutputError
from elmo_zh.run.files import atomic_path, remove, write_json

_FORM = OutputForm(layout="packed")


@dataclass(kw_only=True)
class DumpCounts:
    """What a dump holds."""

    lines: int = 0
    empty_lines: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    cut_tokens: int = 0

    def add(self, other: "DumpCounts") -> None:
        """Add what another one holds."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Parts:
    """The folder OUTPUT.parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "Parts":
        """Return the parts of an output."""
        return cls(output.with_name(output.name + ".parts"))

    def finished(self) -> list[Path]:
        """Return the finished parts in order: those whose record was written."""
        return [record.with_suffix(".hdf5") for record in sorted(self.path.glob("part-*.json"))]

    def finished_bytes(self) -> int:
        """Return how much room the finished parts take."""
        return sum(path.stat().st_size for path in self.finished())

    def open(self, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Make the folder, or keep what is finished in it.

        Raises:
            OutputError: If that is of another text, model or settings.
        """
        known = self.path / "manifest.json"
        if force or not self.finished():
            remove(self.path)
        elif json.loads(known.read_text(encoding="utf-8")) != json.loads(json.dumps(manifest)):
            raise OutputError(
                f"{self.path} holds an unfinished output of another text, model or settings."
                " Give the same ones to continue it, or --force to start anew."
            )
        write_json(known, manifest)

    def counts(self) -> DumpCounts:
        """Return what the finished parts hold together."""
        finished = self.finished()
        if not finished:
            return DumpCounts()
        return DumpCounts(**json.loads(finished[-1].with_suffix(".json").read_text(encoding="utf-8")))

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the state that was carried out of the latest finished part; None if there is no part."""
        finished = self.finished()
        if not finished:
            return None
        with h5py.File(finished[-1], "r") as part:
            return {name: array[()] for name, array in part["state"].items()}

    def write(
        self, block: LineBlock, contents: Contents, counts: DumpCounts, state: Mapping[str, NDArray[Any]]
    ) -> None:
        """Write one closed file and then its record, which says that it is whole.

        Args:
            block: The lines.
            contents: What they are.
            counts: What all parts hold together, this one included.
            state: What is carried out of it, by name.
        """
        path = self.path / f"part-{block.first_line:012d}.hdf5"
        extra = {f"state/{name}": array for name, array in state.items()}
        with atomic_path(path) as unfinished:
            hdf5_packed.write(unfinished, contents, iter([block]), _FORM, extra)
        write_json(path.with_suffix(".json"), asdict(counts))

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if no part is finished, so that there is nothing to go on from."""
        if not (if_empty and self.finished()):
            remove(self.path)
