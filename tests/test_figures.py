"""The figures that pages quote are those of the records; `python benchmarks/figures.py` writes them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("figures", ROOT / "benchmarks" / "figures.py")
assert SPEC is not None
assert SPEC.loader is not None
figures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(figures)


@pytest.mark.parametrize("path", figures.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_quote_the_records(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert figures.Figures(figures.RECORDS).written(page) == page, "Run: python benchmarks/figures.py"


def test_the_starter_has_at_most_40_megabytes() -> None:
    assert sum(path.stat().st_size for path in figures.STARTER.rglob("*") if path.is_file()) < 40e6
