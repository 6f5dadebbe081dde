"""coverage.png: how much of the training text the most frequent words cover."""

from collections.abc import Sequence
from pathlib import Path

from elmo_zh.pictures import save_picture


def draw_coverage(counts: Sequence[int], num_tokens: int, output: Path) -> None:
    """Draw the share of tokens covered over the number of words.

    Args:
        counts: Of words, falling.
        num_tokens: Of the text, words that are not counted included.
        output: A PNG.
    """
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    shares = np.cumsum(counts) / max(1, num_tokens)
    axes.plot(np.arange(1, len(counts) + 1), shares)
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("most frequent words")
    axes.set_ylabel("tokens of the training text covered")
    axes.grid(alpha=0.3, which="both")
    save_picture(figure, output)
