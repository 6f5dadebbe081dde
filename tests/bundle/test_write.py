"""Forms in which a model is written: what is computed for each, and what is reported."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from drawn_bundles import SHAPES, draw_source
from messages import Heard

from elmo_zh.bundle.layout import BundleForm, BundleLayout
from elmo_zh.bundle.write import GOLDEN_TEXTS, write_model
from elmo_zh.model.bilm import BiLM


@pytest.mark.parametrize(
    ("layout", "dtype", "times"),
    [("bundle", "float32", 1), ("bundle", "float16", 2), ("simple_elmo", "float16", 2), ("simple_elmo", "float32", 0)],
)
def test_golden_vectors_are_computed_once_for_each_precision_of_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, dtype: str, times: int
) -> None:
    source, computed = draw_source(SHAPES["character"]), []
    original = BiLM.layer_activations
    monkeypatch.setattr(BiLM, "layer_activations", lambda *given: computed.append(original(*given)) or computed[-1])
    reporter, form = Heard(), BundleForm(layout=layout, dtype=dtype)
    write_model(tmp_path / "model", source, form, "convert", reporter)
    assert len(computed) == times * len(GOLDEN_TEXTS)
    if dtype == "float16":
        change = max(
            float((exact - rounded)[:, 0, 1:-1].abs().max())
            for exact, rounded in zip(computed[:3], computed[3:], strict=True)
        )
        assert reporter.notes == [
            f"convert: weights rounded to float16; the test sentences' vectors change by {change:.1e} at most."
        ]
    else:
        assert reporter.notes == []
    if layout == "bundle":
        with h5py.File(BundleLayout(tmp_path / "model").golden) as file:
            np.testing.assert_array_equal(file["0"][()], computed[-3][:, 0, 1:-1].numpy())
