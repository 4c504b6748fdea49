"""The parts of certified refits: from scratch, or by passes over the rows."""
