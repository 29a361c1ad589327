"""Where things run: providers, topologies, fake GPUs, and how the parts are built."""
