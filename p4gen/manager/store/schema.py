"""The tables of the manager's store (SQLite), and the additions of each version."""

from __future__ import annotations

from typing import Final

APPLICATION: Final = 0x70346765
"""SQLite's application_id of our files."""
SCHEMA: Final = 8

CONNECTIONS: Final = """
CREATE TABLE connections (
    number INTEGER PRIMARY KEY, spec TEXT NOT NULL, state TEXT NOT NULL, generation INTEGER NOT NULL,
    reason TEXT NOT NULL, spray INTEGER NOT NULL, placed TEXT, switch TEXT, position INTEGER, UNIQUE (switch, position)
) STRICT;
"""
"""Added by schema 2."""
HANDSHAKES: Final = """
CREATE TABLE handshakes (conversation TEXT PRIMARY KEY, numbers TEXT NOT NULL) STRICT;
"""
"""Added by schema 3: connections that hosts have set up."""
RINGS: Final = """
CREATE TABLE rings (
    name TEXT PRIMARY KEY REFERENCES groups ON DELETE CASCADE, generation INTEGER, qp INTEGER, agreed INTEGER, home TEXT
) STRICT;
"""
"""Added by schema 4: groups whose calls run on a ring, and the trees of those that get their switches by leases."""
TREES: Final = """
CREATE TABLE trees (
    name TEXT NOT NULL, generation INTEGER NOT NULL, part INTEGER NOT NULL, rate REAL NOT NULL, tree INTEGER UNIQUE,
    placed TEXT, PRIMARY KEY (name, generation, part),
    FOREIGN KEY (name, generation) REFERENCES placements ON DELETE CASCADE
) STRICT;
"""
"""Added by schema 5: of placements on several trees the rate of each tree, and all but the first, which is in
placements."""
OUT_OF_ORDER: Final = """
CREATE TABLE out_of_order (host TEXT PRIMARY KEY REFERENCES hosts ON DELETE CASCADE) STRICT;
"""
"""Added by schema 6: hosts whose NICs take packets out of order."""
NICS: Final = """
CREATE TABLE nics (host TEXT PRIMARY KEY REFERENCES hosts ON DELETE CASCADE, info TEXT NOT NULL) STRICT;
"""
RING_ENDS: Final = """
CREATE TABLE ring_ends (name TEXT PRIMARY KEY REFERENCES rings ON DELETE CASCADE, ends TEXT NOT NULL) STRICT;
"""
"""Added by schema 7: what other NICs than p4gen's own can do, and rings whose queue pair numbers are not in a row."""
JOBS: Final = """
CREATE TABLE jobs (name TEXT PRIMARY KEY, spec TEXT NOT NULL, hosts TEXT NOT NULL, state TEXT NOT NULL) STRICT;
CREATE TABLE cordoned (node TEXT PRIMARY KEY) STRICT;
"""
"""Added by schema 8."""
ADDED: Final = {2: CONNECTIONS, 3: HANDSHAKES, 4: RINGS, 5: TREES, 6: OUT_OF_ORDER, 7: NICS + RING_ENDS, 8: JOBS}
TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE switches (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, info TEXT NOT NULL) STRICT;
CREATE TABLE hosts (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE) STRICT;
CREATE TABLE ports_down (switch TEXT NOT NULL, port INTEGER NOT NULL, PRIMARY KEY (switch, port)) STRICT;
CREATE TABLE groups (
    name TEXT PRIMARY KEY, spec TEXT NOT NULL, state TEXT NOT NULL, generation INTEGER NOT NULL,
    last INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE TABLE placements (
    name TEXT NOT NULL REFERENCES groups ON DELETE CASCADE, generation INTEGER NOT NULL, tree INTEGER NOT NULL UNIQUE,
    placed TEXT NOT NULL, agreed INTEGER, PRIMARY KEY (name, generation)
) STRICT;
CREATE TABLE contexts (
    switch TEXT NOT NULL, context INTEGER NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL,
    PRIMARY KEY (switch, context),
    FOREIGN KEY (name, generation) REFERENCES placements ON DELETE CASCADE
) STRICT;
CREATE INDEX contexts_of ON contexts (name, generation);
CREATE TABLE slots (
    switch TEXT NOT NULL, pipeline INTEGER NOT NULL, first INTEGER NOT NULL, end INTEGER NOT NULL, name TEXT NOT NULL,
    generation INTEGER NOT NULL, PRIMARY KEY (switch, pipeline, first), UNIQUE (switch, pipeline, end),
    FOREIGN KEY (name, generation) REFERENCES placements ON DELETE CASCADE
) STRICT;
CREATE INDEX slots_of ON slots (name, generation);
CREATE TABLE epochs (
    switch TEXT NOT NULL, kind TEXT NOT NULL, pipeline INTEGER NOT NULL, epoch INTEGER NOT NULL, spans TEXT NOT NULL,
    PRIMARY KEY (switch, kind, pipeline, epoch)
) STRICT;
"""
