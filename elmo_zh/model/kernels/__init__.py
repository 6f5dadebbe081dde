"""How the model is made fast: the LSTM recurrence, products and losses as kernels with gradients."""
