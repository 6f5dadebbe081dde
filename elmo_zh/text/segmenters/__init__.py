"""Segmenters; `elmo_zh.choices.SEGMENTERS` lists them."""
