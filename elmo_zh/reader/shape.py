"""The architecture of a biLM."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CharacterShape:
    """The architecture of a character CNN."""

    num_characters: int  # Number of character ids; the last one is padding
    num_slots: int  # Number of character ids of each word (C), including marks and padding
    embedding_dim: int  # Width of a character's embedding (c)
    filters: tuple[tuple[int, int], ...]  # (width in characters, number of filters) of each convolution
    num_highways: int  # Number of highway layers
    activation: str  # relu or tanh, applied to the largest response of each filter
    # Width of a word's own embedding, which precedes the filters' output (ELMoForManyLangs); 0 in the published
    # architecture.
    word_dim: int = 0
    is_published: bool = True  # Whether the characters are UTF-8 bytes under the published numbers

    @property
    def num_filters(self) -> int:
        """Total number of filters of all widths (N)."""
        return sum(count for _, count in self.filters)

    def has_projection(self, output_dim: int) -> bool:
        """Return whether a projection follows: always with word embeddings, otherwise if N is not the output width."""
        return self.word_dim > 0 or output_dim != self.num_filters


@dataclass(frozen=True, kw_only=True)
class BiLMShape:
    """The architecture of a biLM. A clip of 0 disables clipping; in token mode, `characters` is None."""

    num_tokens: int
    cell_dim: int
    projection_dim: int
    num_layers: int
    cell_clip: float
    projection_clip: float
    skip_connections: bool
    characters: CharacterShape | None = None

    @property
    def mode(self) -> str:
        """The kind of token layer: token or character."""
        return "character" if self.characters else "token"
