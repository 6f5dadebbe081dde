"""Read a bundle with AllenNLP's Elmo; see exchange.run_reader.

AllenNLP 2.10.1 wants torch below 1.13 and imports a dozen large packages that Elmo does not use. Here it stands beside
a current torch, without them: modules with nothing but empty classes are imported in their place, so that anything that
did use one of them would fail rather than compute something else.
"""
# ruff: noqa: E402  # the stubs have to be there before AllenNLP is imported

import importlib.abc
import importlib.machinery
import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from exchange import Embed, iter_batches, run_reader, without_padding

STUBBED = {
    "_jsonnet",
    "base58",
    "cached_path",
    "dill",
    "fairscale",
    "huggingface_hub",
    "lmdb",
    "more_itertools",
    "spacy",
    "torchvision",
    "tqdm",
    "transformers",
}


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for each module of the STUBBED packages; the last of the finders, so only for what is missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a stub that may have submodules, or None for modules of other packages."""
        is_stubbed = name.partition(".")[0] in STUBBED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_stubbed else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Let every name of the module be an empty class."""
        module.__getattr__ = lambda name: type(name, (), {})


sys.meta_path.append(StubFinder())

import cached_path

# Of all stubs the only one that Elmo calls: it downloads what is a URL, and returns the name of a file as it is.
cached_path.cached_path = lambda name, **_: name

import allennlp
from allennlp.modules.elmo import Elmo, batch_to_ids


def build_elmo(bundle: Path) -> Elmo:
    """Return a new Elmo, whose state is zeros, with one output representation for each of the L + 1 layers."""
    options, weights = bundle / "options.json", bundle / "weights.hdf5"
    num_layers = json.loads(options.read_bytes())["lstm"]["n_layers"] + 1
    elmo = Elmo(str(options), str(weights), num_output_representations=num_layers, dropout=0.0)
    for output in range(num_layers):
        for layer, weight in enumerate(getattr(elmo, f"scalar_mix_{output}").scalar_parameters):
            weight.data.fill_(0.0 if layer == output else -9e10)  # of which softmax makes 1 and 0
    return elmo.eval()


def load(bundle: Path, batch_size: int) -> Embed:
    """Return a function that reads sentences in batches with a new Elmo, whose state carries from batch to batch."""
    elmo = build_elmo(bundle)

    @torch.no_grad()
    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        vectors = []
        for batch in iter_batches(sentences, batch_size):
            layers = elmo(batch_to_ids(batch))["elmo_representations"]
            vectors += without_padding(torch.stack(layers, dim=1).numpy(), batch)
        return vectors

    return embed


if __name__ == "__main__":
    run_reader(f"AllenNLP {allennlp.__version__}, torch {torch.__version__}", load)
