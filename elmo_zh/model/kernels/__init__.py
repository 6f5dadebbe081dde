"""Fast parts of the model: the LSTM recurrence and the losses with their gradients, and the products that they use."""
