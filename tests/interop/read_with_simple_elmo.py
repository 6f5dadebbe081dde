"""Read a folder of `elmo-zh export --layout simple_elmo` with simple_elmo; see exchange.run_reader.

simple_elmo keeps the LSTM state of each row of a batch in variables of the graph. They are zeros in a new session and
carry over from batch to batch. Its warm-up reads the first batch once more before anything else, and so moves the
state away from zeros: both checks do without it.
"""

import os
from importlib.metadata import version
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 has no LSTMCell of TensorFlow 1, which simple_elmo is built of

import numpy as np
import simple_elmo
import tensorflow as tf
from exchange import Embed, run_reader, without_padding


def load(model_dir: Path, batch_size: int) -> Embed:
    """Return a function that reads sentences in batches, each call from zero state: in a session of its own."""
    graph = tf.Graph()
    with graph.as_default():
        model = simple_elmo.ElmoModel()
        model.load(str(model_dir), max_batch_size=batch_size)

    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        with graph.as_default():
            return without_padding(model.get_elmo_vectors(sentences, warmup=False, layers="all"), sentences)

    return embed


if __name__ == "__main__":
    run_reader(f"simple_elmo {version('simple_elmo')}, TensorFlow {tf.__version__}", load)
