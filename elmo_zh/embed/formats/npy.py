"""A folder of NumPy files that can be memory-mapped, with the tokens as text.

vectors.npy (N, 2P), or (k, N, 2P) for k layers; line_offsets.npy int64 (lines + 1); character_offsets.npy int32
(N, 2), for raw text; unknown.npy (N,); tokens.txt, one line per line of the text, tokens joined by spaces; info.json.
If lines were split, each "line" above is a sentence, and line.npy int64 has the line of each sentence.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm
from elmo_zh.run.arrays import ArrayWriter

SUFFIX = ".npy"


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the files to a new folder."""
    path.mkdir()
    with ExitStack() as opened:

        def create(name: str, dtype: DTypeLike, *shape: int) -> ArrayWriter:
            file = opened.enter_context((path / f"{name}.npy").open("wb"))
            return ArrayWriter(file, dtype, *shape)

        vectors = create("vectors", contents.dtype, *contents.shape)
        offsets = create("line_offsets", np.int64, contents.num_lines + 1)
        unknown = create("unknown", np.bool_, contents.num_tokens)
        characters = create("character_offsets", np.int32, contents.num_tokens, 2) if contents.has_offsets else None
        lines = create("line", np.int64, contents.num_lines) if contents.has_source_lines else None
        text = opened.enter_context((path / "tokens.txt").open("wb"))
        offsets.append(np.zeros(1, np.int64))
        num_tokens = 0
        for block in blocks:
            vectors.append(block.vectors)
            offsets.append(block.line_offsets[1:] + num_tokens)
            unknown.append(block.unknown)
            if characters is not None and block.character_offsets is not None:
                characters.append(block.character_offsets)
            if lines is not None and block.source_lines is not None:
                lines.append(block.source_lines)
            text.writelines(b" ".join(block.tokens[own]) + b"\n" for _, own in block.iter_lines())
            num_tokens += len(block.tokens)
    info = {**contents.attributes, "lines": contents.num_lines, "tokens": contents.num_tokens, "shape": contents.shape}
    written = json.dumps(info, ensure_ascii=False, indent=2, sort_keys=True, default=lambda value: value.tolist())
    (path / "info.json").write_text(written + "\n", "utf-8")
    return {}
