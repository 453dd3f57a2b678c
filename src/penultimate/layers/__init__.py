"""The layers of a network: sparsity, class separation, CKA between layers."""
