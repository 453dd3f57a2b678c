"""How panels are drawn: colours and shapes, places of labels, and SVG for light and dark pages."""
