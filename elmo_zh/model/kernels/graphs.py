"""A time loop captured as two CUDA graphs, one forward and one backward.

At the sizes of an LSTM step, starting a kernel takes a processor longer than a GPU takes to run it. A graph starts all
of a loop's kernels at once. It reads and writes the tensors that it was captured with, which `TimeLoop` owns. Follows
https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import functools
from collections.abc import Callable, Sequence

import torch

from elmo_zh.model.kernels.gpu_loop import CellSteps, LoopShape, TimeLoop

_WARM_UP_RUNS = 3


class CapturedLoop(TimeLoop):
    """A time loop whose runs are one launch each.

    Raises:
        RuntimeError: On construction, if the device cannot capture it.
    """

    def __init__(self, shape: LoopShape, steps: CellSteps) -> None:
        super().__init__(shape, steps)
        self.prepare_backward()
        # Values for the runs that capturing needs; their results are discarded.
        for tensor in (self.recurrent_weight, self.bias, self.first_output, self.first_cell, self.z, self.d_outputs):
            tensor.zero_()
        for maybe in (self.projection, self.keep, self._keep_output):
            if maybe is not None:
                maybe.zero_()
        # Both now, so that nothing is captured during another layer's backward run.
        self._forward_graph, self._backward_graph = _capture([super().forward, super().backward], shape.device)

    def forward(self) -> None:
        """Run over time."""
        self._forward_graph.replay()

    def backward(self) -> None:
        """Run back over time."""
        self._backward_graph.replay()


def _capture(functions: Sequence[Callable[[], None]], device: torch.device) -> list[torch.cuda.CUDAGraph]:
    """Return a graph of each function.

    They may share memory for temporary tensors: they run one after the other, always in this order, and no temporary
    tensor is read after the end of its function.
    """
    graphs, side_stream = [], _stream_for_capture(device)
    # A capture that fails does not leave its stream, so the stream is restored here.
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.current_stream(device)):
        pool = torch.cuda.graph_pool_handle()
        for function in functions:
            _warm_up(function, side_stream)
            graph = torch.cuda.CUDAGraph()
            # Other threads, such as NCCL's watchdog, may query the device meanwhile.
            with torch.cuda.graph(graph, pool=pool, stream=side_stream, capture_error_mode="thread_local"):
                function()
            graphs.append(graph)
    return graphs


@functools.cache
def _stream_for_capture(device: torch.device) -> torch.cuda.Stream:
    """Return always the same stream, since cuBLAS keeps a workspace for each that it has seen."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _warm_up(function: Callable[[], None], side_stream: torch.cuda.Stream) -> None:
    """Run a few times on the side stream, so that kernels are compiled and workspaces allocated before the capture."""
    current = torch.cuda.current_stream()
    side_stream.wait_stream(current)
    with torch.cuda.stream(side_stream):
        for _ in range(_WARM_UP_RUNS):
            function()
    current.wait_stream(side_stream)
