"""The layers of a network: non-zero activations, class separation, CKA between layers."""
