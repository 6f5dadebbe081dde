"""Shards of a dump: lines of a file that one of several processes or machines embeds, and their merge."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.embed.formats import OutputForm, choose_writer, hdf5_packed, is_output
from elmo_zh.embed.join import DumpReport, check_form, join_blocks
from elmo_zh.embed.line_blocks import Contents, LineBlock
from elmo_zh.embed.shard_digest import is_whole
from elmo_zh.embed.shard_reader import SHARD_ATTRIBUTE, check_shard, describe_shard, find_digest, piece_of, read_shard
from elmo_zh.embed.survey import check_disk_space
from elmo_zh.embed.unfinished import DumpCounts
from elmo_zh.errors import BundleError, OptionError, OutputError, UnsafeFileError
from elmo_zh.hdf5.foreign import read_foreign
from elmo_zh.invocation import program
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.resumable import claimed_output

_SUFFIX = re.compile(r"\.shard-\d+-of-\d+$")
_GIVE_SHARDS = "Give the files that the command embed wrote with --shard."


@dataclass(frozen=True)
class Shard:
    """One of `count` ranges of a file's lines, numbered from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse text such as "2/4".

        Raises:
            OptionError: If the text is anything else.
        """
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise OptionError(f"--shard {text}: expected i/n with i from 1 to n, for example --shard 1/4.")
        return cls(int(match[1]), int(match[2]))

    def output(self, whole: Path) -> Path:
        """Return the path of this shard, given that of the whole output."""
        return whole.with_name(f"{whole.name}.shard-{self.number}-of-{self.count}")

    def lines(self, num_lines: int) -> range:
        """Return the lines of this shard; shards of a file differ by one line at most."""
        return range(num_lines * (self.number - 1) // self.count, num_lines * self.number // self.count)

    def attributes(self, manifest: dict[str, Any], total_lines: int, counts: dict[str, int]) -> dict[str, str]:
        """Return the root attribute that makes a packed file a shard: what all shards share, and its own counts."""
        described = {
            "number": self.number,
            "count": self.count,
            "total_lines": total_lines,
            "of": manifest,
            "counts": counts,
        }
        return {SHARD_ATTRIBUTE: json.dumps(described, ensure_ascii=False)}


@dataclass(frozen=True)
class _ShardFile:
    path: Path
    number: int
    count: int
    total_lines: int
    of: dict[str, Any]
    counts: DumpCounts
    contents: Contents


def merge_shards(
    paths: Sequence[Path], output: Path | None, form: OutputForm, *, force: bool, reporter: Reporter
) -> DumpReport:
    """Join all shards of a file into the output that one process would have written.

    Args:
        paths: The shards, in any order.
        output: Path of the output; default their common name.
        form: The form of the output.
        force: Replace an existing output.
        reporter: Receives messages and progress.

    Raises:
        OutputError: If a file is damaged or no shard; if one is missing, given twice or of another text,
            model or settings; if the output exists.
    """
    shards = sorted((_read(path) for path in paths), key=lambda shard: shard.number)
    _check_together(shards)
    output = output or paths[0].with_name(_SUFFIX.sub("", paths[0].name))
    first = shards[0]
    check_form(form, layers=first.of["layers"], pool=first.of["pool"])
    counts = DumpCounts()
    for shard in shards:
        counts.add(shard.counts)
    contents = first.contents.with_size(num_lines=counts.lines, num_tokens=counts.tokens)
    # Shards of earlier versions lack the text.
    contents = contents.with_text(all(shard.contents.has_text for shard in shards))
    with claimed_output(output, paths, partial(is_output, form=form), force=force):
        needed = choose_writer(form).estimate_bytes(contents)
        check_disk_space(output, needed, is_exact=form.has_known_size, reporter=reporter)
        try:
            blocks = hdf5_packed.iter_blocks([shard.path for shard in shards], _iter_pieces)
            return join_blocks(blocks, output, contents, counts, form, reporter)
        except UnicodeDecodeError:
            raise OutputError("The tokens of these shards are not UTF-8, so `embed` did not write them.") from None


def _read(path: Path) -> _ShardFile:
    if not path.is_file():
        raise OutputError(f"{path} does not exist or is not a file. {_GIVE_SHARDS}")
    is_shard = False
    try:
        [found] = read_foreign(find_digest, path)
        is_shard = found.fields["is_shard"]
        if is_shard and is_whole(path, found.fields["digest_start"]):
            return _described(path)
    except UnsafeFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, BundleError):
        pass  # told below
    if not is_shard:
        raise OutputError(f"{path} is not a shard. {_GIVE_SHARDS}")
    raise OutputError(f"{path} is damaged: it is not as `embed --shard` wrote it. Copy it again, or make it again.")


def _described(path: Path) -> _ShardFile:
    """Return the description of a shard.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, RecursionError, BundleError: If it is not one of `embed`.
    """
    [message] = read_foreign(describe_shard, path)
    found = message.fields
    attributes = dict(found["attributes"])
    attributes |= {name: np.array(value) for name, value in attributes.items() if isinstance(value, list)}
    described = json.loads(attributes.pop(SHARD_ATTRIBUTE))
    counts = DumpCounts(**described.pop("counts"))
    *layers, _, dimension = found["shape"]
    contents = Contents(
        attributes={name: value for name, value in attributes.items() if name not in ("layout", "first_line")},
        first_line=int(attributes["first_line"]),
        num_lines=counts.lines,
        num_tokens=counts.tokens,
        num_layers=layers[0] if layers else None,
        dimension=dimension,
        dtype=found["dtype"],
        is_pooled="pool" in attributes,
        has_offsets="character_offsets" in found["datasets"],
        has_source_lines="line" in found["datasets"],
        has_text="text" in found["datasets"],
    )
    shard = _ShardFile(path, contents=contents, counts=counts, **described)
    numbers = (shard.number, shard.count, shard.total_lines, *asdict(counts).values())
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or not {"layers", "pool"} <= {*shard.of}:
        raise ValueError(f"the description is {described}")
    own = Shard(shard.number, shard.count).lines(shard.total_lines)
    if not 1 <= shard.number <= shard.count or (own.start, len(own)) != (contents.first_line, contents.num_lines):
        raise ValueError(f"{contents.num_lines} lines from {contents.first_line} on, expected {own}")
    [_] = read_foreign(check_shard, path, contents={**asdict(contents), "attributes": {}})
    return shard


def _iter_pieces(path: Path, num_lines: int, num_tokens: int) -> Iterator[tuple[LineBlock | None, bool]]:
    for message in read_foreign(read_shard, path, num_lines=num_lines, num_tokens=num_tokens):
        yield piece_of(message), message.fields["is_full"]


def _check_together(shards: Sequence[_ShardFile]) -> None:
    first = shards[0]
    for shard in shards[1:]:
        different = [name for name in first.of if shard.of.get(name) != first.of[name]]
        if shard.count != first.count or different:
            what = ", ".join(different) or f"number of shards ({first.count} and {shard.count})"
            raise OutputError(f"{first.path} and {shard.path} do not belong together: they differ in {what}.")
    for before, shard in pairwise(shards):
        if before.number == shard.number:
            raise OutputError(f"{before.path} and {shard.path} are the same shard of the text. Give each one once.")
    missing = sorted(set(range(1, first.count + 1)) - {shard.number for shard in shards})
    if missing:
        named = ", ".join(f"{number}/{first.count}" for number in missing[:10])
        raise OutputError(
            f"{len(missing)} of {first.count} shards are missing: {named}."
            f" Make them with: {program()} embed ... --shard {missing[0]}/{first.count}"
        )
