"""The names of a bundle's files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.errors import OutputError
from elmo_zh.run.files import require_no_input

BUNDLE_FORMAT = 1
# All files of a folder in the layout of another program.
OTHER_LAYOUT_FILES = {"options.json", "model.hdf5", "model.safetensors", "vocab.txt"}


def require_replaceable(output: Path, inputs: Iterable[Path], *, force: bool) -> None:
    """Raise OutputError unless the path is free, an empty folder, or with `force` a model that is no input."""
    require_no_input(output, inputs)
    if not output.exists():
        return
    names = {path.name for path in output.iterdir()} if output.is_dir() else {output.name}
    is_model = BundleLayout(output).info.is_file() or ("options.json" in names and names <= OTHER_LAYOUT_FILES)
    if names and not (force and is_model):
        raise OutputError(f"{output} exists already. Choose another --output, or replace a model with --force.")


@dataclass(frozen=True, kw_only=True)
class BundleForm:
    """Form of an exported model: layout of the files and number type of the weights.

    Attributes:
        layout: Names and kinds of the files, one of `elmo_zh.choices.BUNDLE_LAYOUTS`.
        dtype: Number type of the weights, one of `elmo_zh.choices.WEIGHT_DTYPES`.
        with_word2vec: Whether a bundle holds the run's word2vec vectors, if there are any.
    """

    layout: str = "bundle"
    dtype: str = "float32"
    with_word2vec: bool = True


# What `train` and `pipeline` export, and other commands read.
FLOAT32_BUNDLE = BundleForm()


@dataclass(frozen=True)
class BundleLayout:
    """The names of all files of a bundle."""

    path: Path

    @property
    def options(self) -> Path:
        """The sizes of the biLM, as bilm-tf and AllenNLP read them."""
        return self.path / "options.json"

    @property
    def weights(self) -> Path:
        """All weights, in the published layout."""
        return self.path / "weights.hdf5"

    @property
    def vocab(self) -> Path:
        """One token per line; missing for a converted character-mode model without a vocabulary."""
        return self.path / "vocab.data"

    @property
    def vocab_embedding(self) -> Path:
        """A second copy of the token embeddings, where bilm-tf looks for them; token mode only."""
        return self.path / "vocab_embedding.hdf5"

    @property
    def word2vec(self) -> Path:
        """The word2vec vectors that the token layer started from, in float16; not all bundles have them."""
        return self.path / "word2vec.hdf5"

    @property
    def character_counts(self) -> Path:
        """The spelling model of unknown words."""
        return self.path / "character_counts.tsv"

    @property
    def golden(self) -> Path:
        """The vectors of three sentences, for comparison."""
        return self.path / "golden.hdf5"

    @property
    def warm_state(self) -> Path:
        """The state in which sentences start instead of zeros; only for models trained with carried state."""
        return self.path / "warm_state.hdf5"

    @property
    def alphabet(self) -> Path:
        """The ids of Unicode characters; only for models that do not read bytes (ELMoForManyLangs)."""
        return self.path / "alphabet.json"

    @property
    def user_dictionary(self) -> Path:
        """The segmenter's user dictionary; only if one was used."""
        return self.path / "user_dictionary.txt"

    @property
    def info(self) -> Path:
        """The description of the model, and the digests of all other files."""
        return self.path / "bundle.json"

    @property
    def history(self) -> Path:
        """The corpus, the run and the date of the training; has no digest, and older bundles lack it."""
        return self.path / "history.json"

    @property
    def card(self) -> Path:
        """The model card; it has no digest, and converted and older bundles lack it."""
        return self.path / "model_card.md"

    def digested(self) -> list[Path]:
        """Return the existing files whose digests the info holds."""
        required = [self.options, self.weights, self.character_counts, self.golden]
        optional = [self.vocab, self.vocab_embedding, self.word2vec, self.warm_state, self.alphabet]
        optional.append(self.user_dictionary)
        return [*required, *(path for path in optional if path.exists())]
