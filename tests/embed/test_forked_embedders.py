"""Embedders in forked processes: the threads that computed in the parent do not stop them."""

import os
import subprocess
import sys
from pathlib import Path

from drawn_bundles import TOKENS, WORDS, write_model

# The embedder has computed on several threads before the fork.
EMBEDDER = """
import os, sys
import torch
from elmo_zh import ElmoEmbedder

torch.set_num_threads(4)
embedder = ElmoEmbedder.load(sys.argv[1], device="cpu")
sentences = [["我们", "吃", "苹果"], ["今天"]]
expected = embedder.embed_tokens(sentences)
child = os.fork()
if not child:
    found = embedder.embed_tokens(sentences)
    os._exit(0 if all((a == b).all() for a, b in zip(found, expected, strict=True)) else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

# Products of this size are computed by several OpenMP threads, so that the parent has a team of them.
POOL = """
import multiprocessing
from elmo_zh.model.kernels import execution

def product(_):
    left = torch.ones(600, 600)
    return float((left @ left).relu_().sum())

torch.set_num_threads(4)
expected = product(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(product, range(2)) == [expected] * 2
"""


def test_processes_forked_after_several_threads_have_computed(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", TOKENS, words=WORDS)
    command = [sys.executable, "-W", "ignore", "-c", f"{EMBEDDER}{POOL}", model]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "4"}, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
