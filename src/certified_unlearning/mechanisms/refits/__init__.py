"""The parts of certified refits: from nothing, or by passes over the rows."""
