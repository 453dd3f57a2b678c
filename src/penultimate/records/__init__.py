"""What studies leave, read back: rows, descriptions, archives, where a number comes from."""
