"""Initial token embeddings: trained on the run's text by gensim or by our own code, or read from a file."""

from elmo_zh.word2vec.implementations import choose_epochs, chosen_implementation, train_word2vec
from elmo_zh.word2vec.vectors import WordVectors, load_word_vectors, save_word_vectors

__all__ = [
    "WordVectors",
    "choose_epochs",
    "chosen_implementation",
    "load_word_vectors",
    "save_word_vectors",
    "train_word2vec",
]
