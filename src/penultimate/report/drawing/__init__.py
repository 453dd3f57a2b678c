"""The parts of exhibits as they are drawn: panels, maps, labels, colours."""
