"""Segmenters, one per file; `elmo_zh.choices.SEGMENTERS` lists them."""
