"""coverage.png: how much of the text the most frequent words cover."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.save import save_picture


def draw_coverage(covered: NDArray[np.float64], output: Path) -> None:
    """Draw the coverage curve of a text.

    Args:
        covered: Fraction of the tokens that the 0, 1, 2, ... most frequent words cover.
        output: Path of the picture.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(covered)), covered[1:])
    axes.set(xscale="log", ylim=(0, 1), xlabel="most frequent words", ylabel="tokens of the training text covered")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3, which="both")
    save_picture(figure, output)
