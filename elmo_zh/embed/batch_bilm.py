"""A biLM that takes padded batches of ids, like the one inside AllenNLP's `Elmo`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.embed.sentence_vectors import WordVectors
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.language_model import weights_of
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID


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
        """Return token vectors, (B, T + 2, P), and a mask; the CNN runs once per distinct word."""
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
    """Put marks around each sentence of a batch, (B, T) or (B, T, C); return the new values and mask, (B, T + 2)."""
    batch_size, num_tokens = mask.shape
    lengths = mask.sum(dim=1, keepdim=True)
    begin, end = (mark.expand(batch_size, 1, *mark.shape) for mark in (first, last))
    marked = torch.cat([begin, values, end], dim=1)
    positions = torch.arange(num_tokens + 2, device=mask.device)
    is_end = positions == lengths + 1
    marked = torch.where(is_end if values.dim() == 2 else is_end[:, :, None], last, marked)
    return marked, (positions < lengths + 2) & (lengths > 0)
