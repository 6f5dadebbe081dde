"""The settings that a network is built from: choices of the user, and sizes that the model and the data determine."""

from dataclasses import dataclass

INPUTS = ("word2vec", "elmo", "characters")
ELMO_PLACES = ("input", "output", "both")
HEADS = ("bilstm", "linear")
ENCODERS = ("single", "merged")
METRICS = ("accuracy", "macro_f1")


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """Choices for a network.

    Attributes:
        kind: classify, tag or pairs.
        head: Of a classifier: bilstm, or linear on pooled vectors.
        encoder: What reads the inputs: single, one BiLSTM; or merged, two with a residual connection between them.
        inputs: What a unit is made of, some of `INPUTS`.
        elmo_at: Where ELMo goes: at the input, [x; ELMo]; at the output, [h; ELMo]; or both, each with its own mix.
        regression: The label is a number.
        metric: Score of classes that decides when to stop: accuracy, or macro_f1, the mean F1 of the classes.
        hidden_dim: Size of each direction of the LSTMs.
        character_dim: Length of the vectors of characters; the place in the word has a fifth of it.
        dropout: Probability with which each number of an input or output of the LSTMs is dropped in training.
        mix_penalty: Lambda of the paper: factor of the L2 penalty on the weights of the layers.
    """

    kind: str
    head: str = "bilstm"
    encoder: str = "single"
    inputs: tuple[str, ...] = ("word2vec", "elmo")
    elmo_at: str = "input"
    regression: bool = False
    metric: str = "accuracy"
    hidden_dim: int = 200
    character_dim: int = 50
    dropout: float = 0.5
    mix_penalty: float = 0.001


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of a network.

    Attributes:
        num_layers: L + 1.
        elmo_dim: 2P.
        word2vec_dim: P of the word2vec vectors; 0 if they are no input.
        num_characters: Characters with a vector, the two numbers for padding and for unknown ones included.
        num_outputs: Number of classes or tags; 1 for a number.
    """

    num_layers: int
    elmo_dim: int
    word2vec_dim: int
    num_characters: int
    num_outputs: int
