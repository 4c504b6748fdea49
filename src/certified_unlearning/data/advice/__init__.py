"""Why a model may be poor, and what helps: computed from the records without noise, so for the operator only."""
