"""What is told when training has ended: a small table."""

from collections.abc import Mapping
from typing import Any

from elmo_zh.run.reporter import Reporter, format_seconds


def report_summary(counts: Mapping[str, Any], reporter: Reporter) -> None:
    """Tell what was trained, how well it predicts beside the n-gram baselines, and what it took.

    Args:
        counts: Of the stage's record.
        reporter: Where to tell.
    """
    reporter.note(
        f"Trained {counts['tokens']:,} tokens, {counts['epochs']:.2f} epochs, {counts['steps']:,} steps in"
        f" {format_seconds(counts['training_seconds'])}, evaluation included; at most"
        f" {counts['memory']['peak_bytes'] / 1e9:.1f} GB of memory"
        f" ({counts['memory']['predicted_bytes'] / 1e9:.1f} GB predicted)."
    )
    if "heldout" not in counts:
        return
    heldout = counts["heldout"]
    reporter.note(f"All held-out text, {heldout['num_predictions']:,} predictions, step {heldout['step']:,}:")
    reporter.note(f"  {'':16}{'perplexity':>12}{'bits per character':>20}")
    rows = [
        ("biLM", heldout["perplexity"], heldout["bits_per_character"]),
        ("  forward LM", heldout["forward_perplexity"], None),
        ("  backward LM", heldout["backward_perplexity"], None),
        *(
            (name, figures["perplexity"], figures["bits_per_character"])
            for name, figures in counts["baselines"].items()
        ),
    ]
    for name, perplexity, bits in rows:
        reporter.note(f"  {name:16}{perplexity:12,.1f}" + (f"{bits:20.3f}" if bits is not None else ""))
