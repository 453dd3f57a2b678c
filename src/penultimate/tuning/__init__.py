"""The search for hyperparameters, on the holdout alone."""
