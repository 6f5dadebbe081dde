"""The word2vec stage: make the initial token embeddings, from segmented text or a file of vectors."""

from pathlib import Path

from elmo_zh.config import Config, result_settings
from elmo_zh.errors import RunError
from elmo_zh.run.files import remove, require_no_input
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import Stage, StageOutcome, StageResult, run_stage
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.stages.inputs import segmented_inputs
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary
from elmo_zh.word2vec.implementations import choose_epochs, chosen_implementation, train_word2vec
from elmo_zh.word2vec.vectors import load_word_vectors, save_word_vectors


def word2vec(run: RunDir, config: Config, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Run the word2vec stage: write vectors for the vocabulary to word2vec.txt, trained or from a given file."""
    dimension = config.model.projection_dim
    # "auto" is left out, so that a run stays finished if a version without this setting made it, or if it moves to a
    # machine without gensim.
    without = ("vectors", "implementation") if config.word2vec.implementation == "auto" else ("vectors",)
    settings = {**result_settings(config.word2vec, without=without), "dimension": dimension}

    source = Path(config.word2vec.vectors) if config.word2vec.vectors else None
    inputs = {"vocab.data": run.vocab, "vocab.counts": run.vocab_counts}
    inputs |= {"vectors": source} if source else segmented_inputs(run)

    if source:
        require_no_input(run.word2vec, [source], "Copy the file elsewhere, and use the copy.")

    def work() -> StageResult:
        vocabulary = load_vocabulary(run.vocab)
        if not config.word2vec.enabled:
            remove(run.word2vec)
            reporter.note("word2vec: turned off; token embeddings will start at random.")
            return StageResult(outputs=[])
        counts = load_counts(run.vocab_counts, vocabulary)
        if source:
            vectors = load_word_vectors(source, vocabulary, dimension)
        else:
            vectors = train_word2vec(run.train_files(), vocabulary, counts, dimension, config.word2vec, reporter)
        num_covered, num_words = len(vectors.rows), len(vocabulary) - len(SPECIALS)
        if not num_covered:
            raise RunError(f"{source} and {run.vocab} share no word. Do both use the same language and script?")
        save_word_vectors(run.word2vec, vocabulary, vectors)
        by_gensim = not source and chosen_implementation(config.word2vec) == "gensim"
        training = choose_epochs(config.word2vec, sum(counts[UNKNOWN_ID:]))
        trained = f"{training.algorithm}, {counted(training.epochs, 'epoch')}{'' if by_gensim else ', torch'}"
        origin = f"from {source.name}" if source else trained
        reporter.note(
            f"word2vec: {dimension}-dimensional vectors for {num_covered:,} of {num_words:,} words"
            f" ({num_covered / num_words:.2%}), {origin}."
        )
        reproducible = not by_gensim or config.word2vec.num_workers == 1
        if not reproducible:
            reporter.warn("word2vec.num_workers is above 1, so these vectors cannot be reproduced exactly.")
        return StageResult(outputs=[run.word2vec], counts={"covered": num_covered, "reproducible": reproducible})

    stage = Stage(name="word2vec", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)
