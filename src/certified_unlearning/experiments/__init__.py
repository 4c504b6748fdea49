"""The paper's experiments: what to run (`plan`), and how the runs are carried out (`jobs`)."""
