"""Measurements of a network's layers: non-zero activations, class separation, and CKA between layers."""
