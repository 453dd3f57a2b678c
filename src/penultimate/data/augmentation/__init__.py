"""The augmentation of image batches in training."""
