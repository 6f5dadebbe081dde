"""Fast parts of the model: LSTM recurrence, products and losses, as kernels with gradients."""
