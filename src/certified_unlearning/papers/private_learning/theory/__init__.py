"""What claims on private learning are judged with: rates, lower bounds, and parameters as printed."""
