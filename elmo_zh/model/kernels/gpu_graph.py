"""A time loop captured as two CUDA graphs, one forward and one backward.

At the sizes of an LSTM step, starting a kernel takes a processor longer than a GPU takes to run it. A graph starts all
of a loop's kernels at once. It reads and writes the tensors that it was captured with, which `TimeLoop` owns. By the
book: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import functools
from collections.abc import Callable, Sequence

import torch

from elmo_zh.model.kernels.gpu_loop import CellSteps, LoopShape, TimeLoop

_WARM_UP_RUNS = 3


class CapturedLoop(TimeLoop):
    """A time loop of which each run is one launch.

    Raises:
        RuntimeError: On construction, if the device cannot capture it.
    """

    def __init__(self, shape: LoopShape, steps: CellSteps) -> None:
        super().__init__(shape, steps)
        self.prepare_backward()
        # Numbers for the runs that capturing needs; nobody sees what comes of them.
        for tensor in (self.recurrent_weight, self.bias, self.first_output, self.first_cell, self.z, self.d_outputs):
            tensor.zero_()
        for maybe in (self.projection, self.keep):
            if maybe is not None:
                maybe.zero_()
        # Both at once, so that nothing is captured while other gradients are on their way.
        self._forward_graph, self._backward_graph = _capture([super().forward, super().backward], shape.device)

    def forward(self) -> None:
        """Run over time."""
        self._forward_graph.replay()

    def backward(self) -> None:
        """Go back over time."""
        self._backward_graph.replay()


def _capture(functions: Sequence[Callable[[], None]], device: torch.device) -> list[torch.cuda.CUDAGraph]:
    """Return a graph of each function.

    They may share memory for what comes and goes: they run one after the other, always in this order, and nothing that
    lies in it is read after the end of each.
    """
    graphs, aside = [], _stream_for_capture(device)
    # A capture that fails does not leave its stream, so that is done here.
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.current_stream(device)):
        pool = torch.cuda.graph_pool_handle()
        for function in functions:
            _warm_up(function, aside)
            graph = torch.cuda.CUDAGraph()
            # Other threads, such as NCCL's watchdog, may ask the device something meanwhile.
            with torch.cuda.graph(graph, pool=pool, stream=aside, capture_error_mode="thread_local"):
                function()
            graphs.append(graph)
    return graphs


@functools.cache
def _stream_for_capture(device: torch.device) -> torch.cuda.Stream:
    """Return one and the same stream, since cuBLAS keeps a workspace for each that it has seen."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _warm_up(function: Callable[[], None], aside: torch.cuda.Stream) -> None:
    """Run a few times on the stream aside, so that kernels are compiled and workspaces taken before the capture."""
    current = torch.cuda.current_stream()
    aside.wait_stream(current)
    with torch.cuda.stream(aside):
        for _ in range(_WARM_UP_RUNS):
            function()
    current.wait_stream(aside)
