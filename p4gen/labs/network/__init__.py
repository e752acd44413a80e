"""The network of a lab: namespaces, links and their faults, captures."""
