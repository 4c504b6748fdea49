"""Text columns as sparse rows, without a vocabulary."""
