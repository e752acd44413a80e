"""Labs: a topology of switches and hosts under Mininet, in separate namespaces, with a manager and a prompt.

``launch`` checks, builds and starts ``inside``, which is process 1 of the lab's namespaces and runs ``session``: the
network, its processes, and the requested work (``prompt``, ``scenario``, ``suite``, ``measure``).
"""
