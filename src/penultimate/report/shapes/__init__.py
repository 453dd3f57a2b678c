"""The kinds of tables and figures, built from the quantities that an exhibit names."""
