"""The token id store: segmented text as numbers on disk, in shards, read through memory maps.

A folder of raw little-endian arrays and `store.json`, which gives their lengths and the vocabulary's digest. Each
segmented file is one shard; shards are numbered from 0 and follow each other as the files do. Of shard 00000:

- `train-00000.ids`, `heldout-00000.ids`: input ids of words, uint16 where they allow it, else uint32; no <S> or </S>.
- `train-00000.offsets`, `heldout-00000.offsets`: uint64, one more than sentences; sentence s of the shard is
  ids[offsets[s]:offsets[s+1]].
- `train-00000.documents`: uint64, one more than documents; document d of the shard is its sentences documents[d] to
  documents[d+1], the last one left out. No document is empty.
- `heldout-00000.characters`: uint32, characters of each held-out sentence's words.
- `heldout-00000.spelling`: float64, nats that spelling the sentence's unknown words costs.

Of all shards together:

- `other_words.txt`: in character mode, the words outside the vocabulary, one a line, in the order in which they come
  first, held-out text after training text; the first has id V.
- `store.json`: `format` (2), `id_dtype` (<u2 or <u4), `vocabulary_digest`, totals, and under `train` and `heldout` the
  `tokens`, `sentences`, `unknown` words and (of training text) `documents` of each shard.
"""
