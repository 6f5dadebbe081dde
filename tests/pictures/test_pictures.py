"""training.png: what is written in them, and that nothing overlaps."""

import math
import random
import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from elmo_zh.pictures import canvas
from elmo_zh.pictures.canvas import (
    can_write,
    describe_numbers,
    ticks_of_logarithms,
)
from elmo_zh.pictures.figures import Point, confusion_figure, drift_figure, training_figure, usages_figure

BASELINES = {"unigram": {"perplexity": 912.4}, "bigram": {"perplexity": 101.7}}
TITLE, DETAILS = "biLM trained on news (a.txt)", ["token mode, 2 layers"]


def metrics(num_steps: int, *, step_tokens: int = 2560, seconds: float = 0.9, every: int = 10) -> list[dict[str, Any]]:
    """Return lines of a training whose perplexity falls from 30,211 to about 100, evaluated twelve times."""
    chance = random.Random(1)
    lines: list[dict[str, Any]] = []
    for step in range(0, num_steps + 1, every):
        perplexity = 95 + 1400 * math.exp(-12 * step / num_steps)
        tokens = step * step_tokens
        if step:
            loss = math.log(perplexity) + chance.gauss(0, 0.1)
            lines.append({"step": step, "tokens": tokens, "train_loss": loss, "elapsed_seconds": step * seconds})
        if step % (num_steps // 12) == 0:
            heldout = perplexity * 1.05 if step else 30_211.4
            lines.append({"step": step, "tokens": tokens, "heldout_set": "sample", "heldout_perplexity": heldout})
    return lines


def texts_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def boxes(texts: Sequence[Text]) -> list[Bbox]:
    return [text.get_window_extent() for text in texts if text.get_visible() and text.get_text()]


def tick_labels(axes: Axes) -> list[list[Text]]:
    low_x, high_x = axes.get_xlim()
    low_y, high_y = axes.get_ylim()
    inside_x = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low_x <= tick.get_loc() <= high_x]
    inside_y = [tick.label1 for tick in axes.yaxis.get_major_ticks() if low_y <= tick.get_loc() <= high_y]
    return [inside_x, inside_y]


def assert_readable(figure: Figure) -> None:
    """No tick label covers another one, and the legends are inside the picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    for axes in figure.axes:
        for labels in tick_labels(axes):
            assert not [pair for pair in combinations(boxes(labels), 2) if pair[0].overlaps(pair[1])]
        for box in boxes(legend.get_texts() if (legend := axes.get_legend()) else []):
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, "a label is cut off"
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, "a label is cut off"


@pytest.mark.parametrize("num_steps", [120, 60_000])
def test_training_says_what_was_trained_and_what_came_of_it(num_steps: int) -> None:
    lines = metrics(num_steps)
    figure = training_figure(lines, BASELINES, TITLE, DETAILS)
    assert_readable(figure)
    texts = texts_of(figure)
    last = [line["heldout_perplexity"] for line in lines if "heldout_set" in line][-1]
    for expected in (TITLE, DETAILS[0], f"biLM {last:.1f}", "unigram 912.4", "bigram 101.7"):
        assert expected in texts
    assert any(text.startswith("smoothed: 4.") for text in texts)


@pytest.mark.parametrize("value", [math.nan, math.exp(699)])
def test_perplexities_that_are_not_finite_are_not_drawn(value: float) -> None:
    lines = metrics(1200)
    lines[-1]["heldout_perplexity"] = value
    figure = training_figure(lines, BASELINES, TITLE, DETAILS)
    assert_readable(figure)
    assert len(figure.axes[0].lines[0].get_xdata()) == 11
    assert min(figure.axes[0].lines[0].get_xdata()) > 0  # the untrained model would flatten the rest
    assert figure.axes[0].get_ylim()[1] < 3000


def test_nothing_was_evaluated_or_logged() -> None:
    assert_readable(training_figure([], {}, TITLE, DETAILS))
    assert_readable(training_figure(metrics(120)[1:2], BASELINES, TITLE, []))
    without_heldout = training_figure(metrics(120)[1:2], {}, TITLE, [])
    assert_readable(without_heldout)
    assert all(axes.get_position().height > 0.2 for axes in without_heldout.axes), "the axes collapsed"


def test_labels_that_no_font_has_become_numbers_with_a_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Chinese font, neither the labels nor the title leave a box or a warning of the library."""
    assert can_write("biLM news_2 (ü)")
    assert not can_write("\U000f1234")  # private: only a font of last resort has it
    own = dict([*canvas._fonts().items()][:1])
    monkeypatch.setattr(canvas, "_fonts", lambda: own)
    figure = confusion_figure(np.array([[3, 1], [0, 2]]), ["骨科", "呼吸科"], "龘: 6 test examples")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas.save_picture(figure, tmp_path / "confusion.png")
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "2"]
    [line] = describe_numbers(["骨科", "呼吸科"], "confusion.png")
    assert "1 骨科, 2 呼吸科" in line
    assert describe_numbers(["a", "b"], "confusion.png") == []


@pytest.mark.parametrize(("low", "high"), [(71, 190), (95, 1500), (99, 101), (2, 3e6), (5, 9), (1.2, 20), (80, 330)])
def test_ticks_of_logarithms_are_few_and_round(low: float, high: float) -> None:
    ticks = ticks_of_logarithms(low, high)
    assert 2 <= len(ticks) <= 10
    assert all(low <= tick <= high for tick in ticks)
    assert all(len(f"{tick:.10g}".replace(".", "").rstrip("0")) <= 4 for tick in ticks)


def test_usages_have_a_colour_each_and_a_legend() -> None:
    places = np.random.default_rng(1).standard_normal((40, 3))
    labels = np.arange(40) % 3
    names = [(f"usage {number}: 33%", "\uf8ff no font") for number in (1, 2, 3)]
    figure = usages_figure(places, labels, names, "fruit: 3 usages", ["40 occurrences, layer 2"])
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [name for name, _ in names]
    assert len({tuple(dots.get_facecolor()[0]) for dots in axes.collections}) == 3
    for label, dots in enumerate(axes.collections):
        np.testing.assert_array_equal(dots.get_offsets(), places[labels == label, :2])
    assert {"fruit: 3 usages", "40 occurrences, layer 2"} <= set(texts_of(figure))
    one = usages_figure(places[:, :1], np.zeros(40, int), [("usage 1: 100%",)], "fruit", [])
    assert not one.axes[0].collections[0].get_offsets()[:, 1].any()


def test_every_word_has_its_own_colour_and_marker_and_a_line_of_the_legend() -> None:
    curves = {f"word {number}": [Point(0.1, 0.0, 0.2, True)] for number in range(40)}
    figure = drift_figure(curves, ["1600 → 1800"], "excess", 2)
    [axes] = figure.axes
    entries = axes.get_legend().get_lines()
    assert len({(entry.get_color(), entry.get_marker()) for entry in entries}) == 40
    figure.canvas.draw()
    legend, room = axes.get_legend().get_window_extent(), figure.bbox
    assert room.y0 <= legend.y0 <= legend.y1 <= room.y1


@pytest.mark.skipif(not can_write("困惑度真实"), reason="no Chinese font: apt-get install fonts-noto-cjk")
def test_pictures_are_in_the_language_of_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of the data stay as they are, and so do texts that no font can write."""
    messages = {"true label": "真实", "training loss": "困惑", "predicted label": "\U0001fffe"}
    monkeypatch.setattr(canvas, "_", lambda message: messages.get(message, message))
    figure = confusion_figure(np.eye(2, dtype=np.int64), ["training loss", "b"], "x")
    canvas.save_picture(figure, tmp_path / "confusion.png")
    assert (figure.axes[0].get_ylabel(), figure.axes[0].get_xlabel()) == ("真实", "predicted label")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["training loss", "b"]
