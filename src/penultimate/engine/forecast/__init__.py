"""What a study will take before it runs: time, disk and memory."""
