"""What is proved, and counted, about certified predictions; only claims use it."""
