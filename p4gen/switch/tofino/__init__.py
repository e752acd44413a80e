"""Intel's tofino-model as a target: its files, its processes, and its control plane, which is BF-Runtime."""
