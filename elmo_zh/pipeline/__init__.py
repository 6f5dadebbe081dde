"""The stages of a run, from raw text to a bundle, each as `elmo_zh.stages` does and records it."""

from elmo_zh.pipeline.counting import vocab
from elmo_zh.pipeline.encoding import encode
from elmo_zh.pipeline.exporting import export
from elmo_zh.pipeline.segmenting import segment
from elmo_zh.pipeline.training import train
from elmo_zh.pipeline.vectors import word2vec
from elmo_zh.pipeline.whole import link_latest, pipeline

__all__ = ["encode", "export", "link_latest", "pipeline", "segment", "train", "vocab", "word2vec"]
