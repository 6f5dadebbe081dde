"""Fast parts of the model: the LSTM recurrence, the losses, matrix products, and parallel execution on a CPU."""
