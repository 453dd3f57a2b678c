"""The search for hyperparameters, which uses the holdout alone."""
