"""The hyperparameters that the searches chose, a module for each search: `make searches` writes them."""
