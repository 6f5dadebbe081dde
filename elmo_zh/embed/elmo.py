"""ELMo as a PyTorch module for downstream models, with the constructor and output of AllenNLP's `Elmo`.

Unlike AllenNLP's, it carries no state from call to call: a sentence's vectors do not depend on earlier calls.
"""

import copy
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.bundle import is_model
from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.bundle.options_json import load_options, parse_shape, require_published
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.weights import load_model
from elmo_zh.bundle.write import write_tuned
from elmo_zh.checks import check_token_sentences
from elmo_zh.embed.sentence_vectors import WordVectors
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.language_model import build_modules, weights_of
from elmo_zh.model.scalar_mix import ScalarMix
from elmo_zh.model.token_layer import TokenInputs
from elmo_zh.reader.weights import build_lexicon
from elmo_zh.run.files import atomic_path
from elmo_zh.run.outputs import claimed_output
from elmo_zh.vocabulary.lexicon import BYTES, Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID

PUBLISHED_SLOTS = 50
_SENTENCE_MARKS = {"<S>": BYTES.begin_sentence, "</S>": BYTES.end_sentence}


def batch_to_ids(batch: Sequence[Sequence[str]], num_slots: int = PUBLISHED_SLOTS) -> Tensor:
    """Return the character ids of segmented sentences, like AllenNLP's function of the same name.

        character_ids = batch_to_ids([["今天", "天气", "很", "好"], ["你好"]])  # (2, 4, 50)

    These ids are for character-mode models; `Elmo.batch_to_ids` makes ids for either mode.

    Args:
        batch: B sentences, each a list of words; the words `<S>` and `</S>` are the sentence marks.
        num_slots: Character slots of each word (C); AllenNLP supports only 50. Longer words are truncated.

    Returns:
        int64, shape (B, T, C), T being the length of the longest sentence: the published ids plus 1, words padded with
        261, sentences padded with 0.

    Raises:
        TypeError: If a sentence is not a list of words, or a word is not a string.
    """
    sentences = check_token_sentences(batch, "batch_to_ids", "batch")
    return _pad([[_spell(word, num_slots) for word in sentence] for sentence in sentences], (num_slots,))


def _spell(word: str, num_slots: int) -> NDArray[np.int64]:
    if word in _SENTENCE_MARKS:
        return BYTES.spell_sentence_mark(_SENTENCE_MARKS[word], num_slots)
    return BYTES.spell(word, num_slots)


def _pad(sentences: Sequence[Sequence[NDArray[np.int64] | int]], token_shape: tuple[int, ...]) -> Tensor:
    """Return ids increased by 1, padded with 0 to the longest sentence, shape (B, T, *token_shape)."""
    ids = np.zeros((len(sentences), max(map(len, sentences), default=0), *token_shape), np.int64)
    for row, sentence in enumerate(sentences):
        for place, token in enumerate(sentence):
            ids[row, place] = token + 1
    return torch.from_numpy(ids)


class BatchBiLM(nn.Module):
    """A biLM for padded batches of ids that adds <S> and </S> and returns every layer, like AllenNLP's `_ElmoBiLm`.

    Attributes:
        bilm: The model; every sentence starts from its warm state, or from zeros.
        num_layers: L + 1, the token layer included.
        cached_words: Precomputed token vectors of <S>, </S> and then `vocab_to_cache`, shape (2 + words, P), or None;
            they are never trained.
    """

    cached_words: Tensor | None

    _marks: Tensor  # The inputs for <S> and </S>: their ids, or in character mode their spellings, (2, C)

    def __init__(self, bilm: BiLM, lexicon: Lexicon, vocab_to_cache: Sequence[str] | None = None) -> None:
        super().__init__()
        self.bilm = bilm
        self.num_layers = bilm.shape.num_layers + 1
        if bilm.shape.characters is None:
            # Not every optimiser accepts sparse gradients.
            bilm.token_table.has_sparse_gradient = False
        elif bilm.shape.characters.word_dim:
            raise ValueError("this model needs words as well as their characters; use ElmoEmbedder")
        marks = [BEGIN_ID, END_ID] if bilm.shape.characters is None else lexicon.character_ids([BEGIN_ID, END_ID])
        self.register_buffer("_marks", torch.as_tensor(np.asarray(marks)), persistent=False)
        cached_words = None if vocab_to_cache is None else self._encode_words(lexicon, vocab_to_cache)
        # Not a parameter: `Elmo.save` writes the biLM, and vectors trained apart from it would be lost.
        self.register_buffer("cached_words", cached_words)

    @torch.no_grad()
    def _encode_words(self, lexicon: Lexicon, words: Sequence[str]) -> Tensor:
        if isinstance(words, str):
            raise TypeError(f"vocab_to_cache is the string {words!r:.40}; expected a list of words")
        distinct = {word: row for row, word in enumerate(dict.fromkeys(words), start=2)}
        vectors = torch.from_numpy(WordVectors(weights_of(self.bilm, None), lexicon, "backoff")(list(distinct)))
        return vectors[[0, 1, *map(distinct.__getitem__, words)]]

    def get_output_dim(self) -> int:
        """Return 2P, the length of each vector."""
        return 2 * self.bilm.shape.projection_dim

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Return `activations`, a list of L + 1 tensors (B, T + 2, 2P), and `mask`, bool (B, T + 2).

        `inputs` are ids plus 1, 0 where padded: character ids, (B, T, C), or in token mode word ids, (B, T).
        `word_inputs`, (B, T), are rows of `vocab_to_cache` to use instead, 0 where padded.
        """
        needs_gradient = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in self.parameters())
        with torch.set_grad_enabled(needs_gradient):
            if word_inputs is not None and self.cached_words is not None:
                token_vectors, mask = self._look_up(self.cached_words, word_inputs)
            elif self.bilm.shape.characters is None:
                ids, mask = add_marks(inputs - 1, inputs > 0, *self._marks.unbind())
                token_vectors = self.bilm.token_layer(TokenInputs(ids.clamp(min=0)))
            else:
                token_vectors, mask = self._spell(inputs)
            layers, _ = self.bilm.read_sentences(token_vectors, mask, self.bilm.start_state(len(mask)))
        return {"activations": list(layers), "mask": mask}

    def _look_up(self, table: Tensor, word_inputs: Tensor) -> tuple[Tensor, Tensor]:
        first = torch.zeros((), dtype=word_inputs.dtype, device=word_inputs.device)
        rows, mask = add_marks(word_inputs + 2, word_inputs > 0, first, first + 1)
        return functional.embedding(rows, table), mask

    def _spell(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return token vectors, (B, T + 2, P), and a mask; unless compiled, the CNN runs once per distinct word."""
        is_word = (inputs > 0).any(dim=2)
        padding = self.bilm.character_cnn.shape.num_characters - 1
        characters = torch.where(is_word[:, :, None], inputs - 1, padding)
        characters, mask = add_marks(characters, is_word, *self._marks.unbind())
        flat = characters.flatten(0, 1)
        if torch.compiler.is_compiling():
            # The number of distinct words would be a size that depends on the data, which compiling does not allow.
            places = torch.arange(len(flat), device=flat.device)
        else:
            flat, places = torch.unique(flat, dim=0, return_inverse=True)
        return self.bilm.token_layer(TokenInputs(places.view(mask.shape), flat)), mask


def add_marks(values: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Put marks around each sentence of a batch, (B, T) or (B, T, C); return values and mask with T + 2 tokens."""
    batch_size, num_tokens = mask.shape
    lengths = mask.sum(dim=1, keepdim=True)
    begin, end = (mark.expand(batch_size, 1, *mark.shape) for mark in (first, last))
    marked = torch.cat([begin, values, end], dim=1)
    positions = torch.arange(num_tokens + 2, device=mask.device)
    is_end = positions == lengths + 1
    marked = torch.where(is_end if values.dim() == 2 else is_end[:, :, None], last, marked)
    return marked, (positions < lengths + 2) & (lengths > 0)


class Elmo(nn.Module):
    """ELMo representations for a downstream model; a replacement for `allennlp.modules.elmo.Elmo`.

    elmo = Elmo.from_bundle("runs/latest/model")
    output = elmo(elmo.batch_to_ids([["今天", "天气", "很", "好"]]))
    output["elmo_representations"][0]  # float32, (1, 4, 2P)
    """

    def __init__(
        self,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        num_output_representations: int = 1,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: BatchBiLM | None = None,
    ) -> None:
        """Load a model in the published layout.

        Args:
            options_file: Path of options.json; None with `module`.
            weight_file: Path of weights.hdf5; None with `module`.
            num_output_representations: Number of different mixes of the layers to return.
            requires_grad: Fine-tune the biLM too; ignored with `module`.
            do_layer_norm: Normalise the layers before they are mixed.
            dropout: Dropout probability of each representation in training.
            vocab_to_cache: Words whose token vectors are computed once; ignored with `module`. `word_inputs` of
                `forward` are rows of this list, and row 0 is padding.
            keep_sentence_boundaries: Return <S> and </S> too.
            scalar_mix_parameters: Fixed weights of the layers, before the softmax, instead of learned ones.
            module: A biLM to use instead of the files.

        Raises:
            BundleError: If the files are damaged or do not fit together.
            ValueError: Unless either both files or a module are given, or if `scalar_mix_parameters` does not have one
                weight per layer.
        """
        super().__init__()
        if [file is not None for file in (options_file, weight_file)] != [module is None] * 2:
            raise ValueError("Elmo: expected options_file and weight_file, or module; Elmo.from_bundle takes a bundle")
        if module is None:
            module = _load_published(Path(str(options_file)), Path(str(weight_file)), vocab_to_cache)
            module.requires_grad_(requires_grad)
        self._elmo_lstm = module
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self._num_mixes = num_output_representations
        for index in range(num_output_representations):
            mix = ScalarMix(
                self._elmo_lstm.num_layers,
                do_layer_norm,
                scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{index}", mix)
        self._lexicon: Lexicon | None = None
        self._loaded: tuple[Path, str] | None = None  # The folder of the bundle and its digest

    @classmethod
    def from_bundle(
        cls,
        path: str | Path,
        num_output_representations: int = 1,
        *,
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        **options: Any,
    ) -> "Elmo":
        """Load a bundle of elmo-zh, in character or token mode, with its warm state if it has one.

        Args:
            path: The folder of the bundle, or the name of an installed model.
            num_output_representations: As in the constructor, like all other arguments.
            requires_grad: Likewise.
            vocab_to_cache: Likewise.
            **options: `do_layer_norm`, `dropout`, `keep_sentence_boundaries`, `scalar_mix_parameters`.

        Raises:
            BundleError: If the folder is not a valid bundle.
            TypeError: If `path` is not a path.
            ValueError: If the bundle comes from an ELMoForManyLangs model with word embeddings (use ElmoEmbedder), or
                if `scalar_mix_parameters` does not have one weight per layer.
        """
        bundle = load_bundle(find_bundle(path))
        lexicon = bundle.build_lexicon()
        module = BatchBiLM(bundle.bilm, lexicon, vocab_to_cache).requires_grad_(requires_grad)
        elmo = cls(None, None, num_output_representations, module=module, **options)
        elmo._lexicon, elmo._loaded = lexicon.without_other_words(), (bundle.path.absolute(), bundle.digest)
        return elmo

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the current, possibly fine-tuned biLM as a bundle.

        The bundle has no scalar mixes, which belong to the downstream model and its `state_dict`. It has no softmax
        either, since a biLM trained as part of another network no longer predicts words.

        Args:
            path: The folder, which appears only when it is complete.
            force: Replace an existing bundle.

        Raises:
            TypeError: If `path` is not a path.
            ValueError: If this model was not loaded with `from_bundle`.
            OutputError: If the folder is not empty and `force` is not given, if it holds files but no model, or if it
                is the bundle that this model was loaded from.
            BundleError: If the bundle that this model was loaded from is gone or has changed.
        """
        output = Path(path)
        if self._loaded is None:
            raise ValueError("save: this model has no bundle that tells how text is read; load it with from_bundle")
        bilm = copy.deepcopy(self._elmo_lstm.bilm).cpu().eval()
        with (
            claimed_output(output, [self._loaded[0]], is_model, force=force),
            atomic_path(output) as unfinished,
        ):
            write_tuned(unfinished, load_bundle(*self._loaded), weights_of(bilm, None))

    def batch_to_ids(self, batch: Sequence[Sequence[str]]) -> Tensor:
        """Return the ids that `forward` takes for segmented sentences, according to the model's mode.

        Args:
            batch: B sentences, each a list of words.

        Returns:
            int64, 0 where padded: (B, T, C) in character mode, (B, T) in token mode.

        Raises:
            TypeError: If a sentence is not a list of words, or a word is not a string.
            ValueError: If this is a token-mode model that was loaded without its vocabulary.
        """
        if self._lexicon is None:
            characters = self._elmo_lstm.bilm.shape.characters
            if characters is None:
                raise ValueError(
                    "this token-mode model was loaded without its vocabulary; load its bundle with from_bundle"
                )
            return batch_to_ids(batch, characters.num_slots)
        lexicon = self._lexicon.without_other_words()
        encoded = [lexicon.encode(sentence) for sentence in check_token_sentences(batch, "elmo.batch_to_ids", "batch")]
        if lexicon.num_slots is None:
            return _pad(encoded, ())
        return _pad([list(lexicon.character_ids(ids)) for ids in encoded], (lexicon.num_slots,))

    def get_output_dim(self) -> int:
        """Return 2P, the length of each vector."""
        return self._elmo_lstm.get_output_dim()

    def scalar_mixes(self) -> list[ScalarMix]:
        """Return the scalar mixes, one per representation."""
        mixes = (getattr(self, f"scalar_mix_{index}") for index in range(self._num_mixes))
        return [mix for mix in mixes if isinstance(mix, ScalarMix)]

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Return the representations of a batch.

        Args:
            inputs: Ids from the method `batch_to_ids`, int64, shape (B, T, C), in token mode (B, T); B may stand for
                several axes.
            word_inputs: With `vocab_to_cache`: rows of that list, 0 where padded, int64, shape (B, T).

        Returns:
            `elmo_representations`: a list of `num_output_representations` tensors, float32, shape (B, T, 2P), zero
            where padded; `mask`: bool, shape (B, T). With sentence boundaries T is larger by 2.

        Raises:
            ValueError: If the ids were made for the other mode or a different number of character slots, or are out of
                range.
        """
        self._check_ids(inputs, word_inputs)
        word_axes = 1 if self._elmo_lstm.bilm.shape.characters is None else 2
        leading = inputs.shape[:-word_axes]
        flat = inputs.flatten(0, len(leading) - 1) if len(leading) > 1 else inputs
        flat_words = word_inputs.flatten(0, -2) if word_inputs is not None and word_inputs.dim() > 2 else word_inputs
        outputs = self._elmo_lstm(flat, flat_words)
        mask, keep = outputs["mask"], slice(None)
        if not self._keep_sentence_boundaries:
            # With its marks a sentence is two tokens longer: a word is where the mask is True two places further on.
            mask, keep = mask[:, 2:], slice(1, -1)
        representations = []
        for mix in self.scalar_mixes():
            mixed = mix(outputs["activations"], outputs["mask"])[:, keep]
            representations.append(self._dropout(mixed * mask[:, :, None]).unflatten(0, leading))
        return {"elmo_representations": representations, "mask": mask.unflatten(0, leading)}

    def _check_ids(self, inputs: Tensor, word_inputs: Tensor | None) -> None:
        """Raise ValueError if ids were made for the other mode or another number of slots, or are out of range."""
        module = self._elmo_lstm
        characters = module.bilm.shape.characters
        kind = f"character ids, shape (sentences, words, {characters.num_slots})" if characters else "word ids"
        expected = f"{kind}; create them with the method batch_to_ids of the module that Elmo.from_bundle returns"
        num_axes = 3 if characters else 2
        has_other_width = characters is not None and inputs.shape[-1] != characters.num_slots
        if inputs.dim() < num_axes or has_other_width or (characters is None and _are_spelled(inputs)):
            raise ValueError(f"forward: inputs has shape {tuple(inputs.shape)}; expected {expected}")
        size = characters.num_characters if characters else module.bilm.shape.num_tokens
        _require_range(inputs, "inputs", size, expected)
        if word_inputs is not None and module.cached_words is not None:
            rows = "the index of each word in vocab_to_cache"
            _require_range(word_inputs, "word_inputs", len(module.cached_words) - 3, rows)


def _are_spelled(ids: Tensor) -> bool:
    """Return whether ids are spelled words, which start with the begin-of-word id; False while compiling."""
    if ids.dim() < 3 or torch.compiler.is_compiling() or not ids.numel():
        return False
    first = ids[..., 0]
    return bool(((first == BYTES.begin_word + 1) | (ids == 0).all(dim=-1)).all() and first.any())


def _require_range(ids: Tensor, name: str, largest: int, expected: str) -> None:
    # Values are known only when they are computed, not while the module is compiled.
    values = [] if torch.compiler.is_compiling() or not ids.numel() else [*map(int, ids.aminmax())]
    if wrong := [value for value in values if not 0 <= value <= largest]:
        raise ValueError(f"forward: {name} has {wrong[0]}; expected 1 to {largest}, or 0 for padding: {expected}")


def _load_published(options_file: Path, weight_file: Path, vocab_to_cache: Sequence[str] | None) -> BatchBiLM:
    shape = parse_shape(load_options(options_file), options_file, None)
    require_published(shape, options_file, "Elmo.from_bundle(BUNDLE)")
    weights = load_model(weight_file, shape, with_softmax=False)
    return BatchBiLM(build_modules(weights)[0], build_lexicon(shape, None, BYTES), vocab_to_cache)
