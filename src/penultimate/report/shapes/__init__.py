"""How each kind of table and figure is built from the quantities that an exhibit names."""
