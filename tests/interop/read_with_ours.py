"""Read a bundle with elmo-zh itself, in the project's environment, to measure its speed; see exchange.run_reader."""

from pathlib import Path

import numpy as np
import torch
from exchange import Embed, run_reader

import elmo_zh
from elmo_zh import ElmoEmbedder


def load(bundle: Path, _: int) -> Embed:
    """Return a function that reads sentences; every one starts from zero state, and the batches are our own."""
    embedder = ElmoEmbedder.load(bundle, device="cpu")

    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        return embedder.embed_tokens(sentences)

    return embed


if __name__ == "__main__":
    run_reader(f"elmo-zh {elmo_zh.__version__}, torch {torch.__version__}", load)
