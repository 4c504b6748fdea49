"""The parts of exact unlearning: fresh draws, couplings, gradients of single records, and sums over prefixes."""
