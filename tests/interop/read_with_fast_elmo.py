"""Read a bundle with pytorch-fast-elmo, in Python 3.7 and torch 1.0; see exchange.run_reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytorch_fast_elmo
import torch
from exchange import Embed, iter_batches, run_reader, without_padding
from pytorch_fast_elmo import FastElmoPlainEncoder, batch_to_char_ids


def load(bundle: Path, batch_size: int) -> Embed:
    """Return a function that reads sentences in batches with a new encoder; its state carries from batch to batch."""
    encoder = FastElmoPlainEncoder(str(bundle / "options.json"), str(bundle / "weights.hdf5"))

    @torch.no_grad()
    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        vectors = []
        for batch in iter_batches(sentences, batch_size):
            layers, _ = encoder(batch_to_char_ids(batch))
            vectors += without_padding(torch.stack(layers, dim=1).numpy(), batch)
        return vectors

    return embed


if __name__ == "__main__":
    run_reader(f"pytorch-fast-elmo {pytorch_fast_elmo.__version__}, torch {torch.__version__}", load)
