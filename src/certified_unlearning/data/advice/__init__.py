"""What makes a model say little, and what helps: for the operator's eyes, computed from the records without noise."""
