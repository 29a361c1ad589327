"""What is broken, and when: faults, each with the proof that it happened."""
