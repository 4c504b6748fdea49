"""Data deletion under adaptive requests (*Forget Unlearning*): plans, bounds, soundness."""
