"""Why a model may be poor, and what helps. It is computed from the records without noise, for the operator only."""
