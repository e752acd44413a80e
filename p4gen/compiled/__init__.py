"""A virtual network in machine code: events, frames, links, switches, NICs and their queue pairs.

All state is in arrays of records (``memory``), which functions compiled by Numba read and write: ``events``, ``links``,
``switches``, ``nics``, ``requester``, ``responder``. ``run`` handles events until there is none left. What is not
compiled is called through one function of Python's (``memory.Ask``), at the place where it happens: completions of work
requests, faults of links, watchers, and whatever is rare.
"""
