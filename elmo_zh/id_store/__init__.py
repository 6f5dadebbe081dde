"""The token id store: segmented text as numbers on disk, in shards that are read through memory maps.

A folder of raw little-endian arrays, and `store.json` with their lengths and the vocabulary's digest. Each segmented
file becomes one shard; shards are numbered from 0 in the order of the files. The files of shard 00000:

- `train-00000.ids`, `heldout-00000.ids`: input ids of the words without <S> and </S>, uint16 if they fit, otherwise
  uint32.
- `train-00000.offsets`, `heldout-00000.offsets`: uint64, one more than there are sentences; sentence s of the shard is
  ids[offsets[s]:offsets[s+1]].
- `train-00000.documents`: uint64, one more than there are documents; document d of the shard consists of the sentences
  from documents[d] up to but excluding documents[d+1]. No document is empty.
- `heldout-00000.characters`: uint32, number of characters in the words of each held-out sentence.
- `heldout-00000.spelling`: float64, cost in nats of spelling the unknown words of each sentence.

Files for all shards together:

- `other_words.txt`: in character mode, the words outside the vocabulary, one per line, in order of first occurrence,
  training text before held-out text; the first has id V.
- `store.json`: `format` (2), `id_dtype` (<u2 or <u4), `vocabulary_digest`, totals, and under `train` and `heldout` the
  numbers of `tokens`, `sentences`, `unknown` words and (for training text) `documents` of each shard.
"""
