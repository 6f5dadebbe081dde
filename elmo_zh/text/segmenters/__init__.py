"""Segmenters, which turn a normalised sentence into tokens; `elmo_zh.choices.SEGMENTERS` lists them."""
