"""Fast parts of the model: the LSTM recurrence, products and losses as kernels with gradients."""
