"""The names of a bundle's files."""

from dataclasses import dataclass
from pathlib import Path

BUNDLE_FORMAT = 1


@dataclass(frozen=True)
class BundleLayout:
    """Names every file of a bundle."""

    path: Path

    @property
    def options(self) -> Path:
        """The biLM's sizes, as bilm-tf and AllenNLP read them."""
        return self.path / "options.json"

    @property
    def weights(self) -> Path:
        """All weights, in the published layout."""
        return self.path / "weights.hdf5"

    @property
    def vocab(self) -> Path:
        """One token a line."""
        return self.path / "vocab.data"

    @property
    def vocab_embedding(self) -> Path:
        """The token embeddings once more, where bilm-tf looks for them."""
        return self.path / "vocab_embedding.hdf5"

    @property
    def character_counts(self) -> Path:
        """The spelling model of unknown words."""
        return self.path / "character_counts.tsv"

    @property
    def golden(self) -> Path:
        """Vectors of three sentences, to compare with."""
        return self.path / "golden.hdf5"

    @property
    def user_dictionary(self) -> Path:
        """The segmenter's user dictionary; only where one was used."""
        return self.path / "user_dictionary.txt"

    @property
    def info(self) -> Path:
        """What the model is, and the digests of all other files."""
        return self.path / "bundle.json"

    def digested(self) -> list[Path]:
        """Return the files there are whose digests the info holds."""
        files = [self.options, self.weights, self.vocab, self.vocab_embedding, self.character_counts, self.golden]
        return [*files, *([self.user_dictionary] if self.user_dictionary.exists() else [])]
