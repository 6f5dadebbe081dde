"""The names of a bundle's files."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.errors import OutputError

BUNDLE_FORMAT = 1
# All that a folder in the layout of another program holds.
OTHER_LAYOUT_FILES = {"options.json", "model.hdf5", "model.safetensors", "vocab.txt"}


def require_replaceable(output: Path, *, force: bool) -> None:
    """Raise OutputError if something is in the way: only an empty folder, or with `force` a model, may be replaced."""
    if not output.exists():
        return
    names = {path.name for path in output.iterdir()} if output.is_dir() else {output.name}
    is_model = BundleLayout(output).info.is_file() or ("options.json" in names and names <= OTHER_LAYOUT_FILES)
    if names and not (force and is_model):
        raise OutputError(f"{output} exists already. Choose another --output, or replace a model with --force.")


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
        """One token a line; not there for another program's character-mode model that came without one."""
        return self.path / "vocab.data"

    @property
    def vocab_embedding(self) -> Path:
        """The token embeddings once more, where bilm-tf looks for them; token mode only."""
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
    def warm_state(self) -> Path:
        """What sentences start from in place of zeros; only where the model was trained with carried state."""
        return self.path / "warm_state.hdf5"

    @property
    def alphabet(self) -> Path:
        """The numbers of Unicode characters; only where a model does not read bytes (ELMoForManyLangs)."""
        return self.path / "alphabet.json"

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
        required = [self.options, self.weights, self.character_counts, self.golden]
        optional = [self.vocab, self.vocab_embedding, self.warm_state, self.alphabet, self.user_dictionary]
        return [*required, *(path for path in optional if path.exists())]
