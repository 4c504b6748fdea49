"""The parts of exact unlearning: fresh draws, couplings, gradients of single records, sums over prefixes."""
