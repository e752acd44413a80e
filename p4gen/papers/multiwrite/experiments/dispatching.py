"""Dispatch from one server to another (sections 3.2 and 6.1, Figures 3 and 8, Table 1): what crosses between them.

Sixteen NPUs have 64 experts, four each; a token goes to eight. Eight tokens in a row go to each expert once, so that
loads are balanced as in the paper. The sources are the NPUs of one server: each copy is acknowledged here, and with
both servers as sources ACKs would take 2.3 % of the links, of which RNICs send fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from p4gen.errors import FailedError
from p4gen.model import EngineName
from p4gen.papers.multiwrite.experiments.paths import Paths, Piece
from p4gen.papers.multiwrite.placing import straight
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "two-servers"
SERVER: Final = 8
"""NPUs of a server."""
EXPERTS, TOP, EACH = 64, 8, 4
"""Experts in all, of a token, of an NPU."""
HIDDEN: Final = 7168
"""Bytes of a token, DeepSeek V3's in one byte each. The paper does not say; its Table 1 has 7,363 bytes a copy."""
BY_EXPERT, BY_RANK, MULTIWRITE = "a copy for each expert", "a copy for each NPU", "MultiWrite"
SCHEMES: Final = (BY_EXPERT, BY_RANK, MULTIWRITE)
Choices = npt.NDArray[np.int64]


def program() -> MultiwriteSpec:
    """The program of all switches: a token is two packets."""
    return MultiwriteSpec(payload=HIDDEN // 2, contexts=64, edges=9, slots=128, ports=16)


def choices(tokens: int, seed: int) -> Choices:
    """The experts of each token of each source, (source, token, expert): of a number of tokens that 8 divides.

    Each row is a set of experts of which all are equally likely.
    """
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(EXPERTS) for _ in range(SERVER * tokens * TOP // EXPERTS)]
    return np.stack(rows).reshape(SERVER, tokens, TOP)


def remote(experts: npt.NDArray[np.int64]) -> list[int]:
    """The ranks on the other server of a token's experts, once for each expert."""
    return [int(expert) // EACH for expert in experts if expert // EACH >= SERVER]


@dataclass(frozen=True)
class Transfer:
    """How the tokens of all sources came to the other server."""

    duration: int
    """ps."""
    copies: float
    """Copies of a token on its source's link out of the server, mean."""


def dispatch(scheme: str, tokens: int, seed: int = 1, engine: EngineName = "jit") -> Transfer:
    """Each source sends so many tokens. Every token is checked at each rank that it names, and that no other is there.

    Raises ``FailedError`` if one is missing.
    """
    spec, chosen = program(), choices(tokens, seed)
    net = Paths(load_topology(NETWORK), spec, (straight, _past_same_index), SERVER * tokens * HIDDEN, engine=engine)
    ended = net.run(_pieces(scheme, chosen))
    for rank in range(SERVER, 2 * SERVER):
        window = np.frombuffer(net.memory[rank], np.uint8).reshape(SERVER, tokens, HIDDEN)
        named = (chosen // EACH == rank).any(axis=2)
        right = np.where(named[..., None], _tokens(tokens), 0)
        if not np.array_equal(window, right):
            raise FailedError(f"{scheme}: rank {rank} has not the tokens that name it")
    sent = net.packets(*(f"n{source}>leaf0" for source in range(SERVER)))
    return Transfer(max(ended), sent / 2 / (SERVER * tokens))


def _past_same_index(source: int, rank: int) -> str | None:
    """Past the NPU of the same number in the other server."""
    return None if source // SERVER == rank // SERVER else f"n{(source + SERVER) % (2 * SERVER)}"


def _tokens(tokens: int) -> npt.NDArray[np.uint8]:
    """The tokens of all sources, (source, token, byte)."""
    numbers = np.arange(SERVER * tokens * HIDDEN // 4, dtype=np.uint32) + 1
    return numbers.view(np.uint8).reshape(SERVER, tokens, HIDDEN)


def _pieces(scheme: str, chosen: Choices) -> Iterator[Piece]:
    sources, tokens, _ = chosen.shape
    data = _tokens(tokens)
    for token in range(tokens):
        for source in range(sources):
            ranks = remote(chosen[source, token])
            offset = (source * tokens + token) * HIDDEN
            body = data[source, token].tobytes()
            if scheme == MULTIWRITE:
                if ranks:
                    yield Piece(source, 1, body, tuple(sorted(set(ranks))), offset)
                continue
            for rank in ranks if scheme == BY_EXPERT else sorted(set(ranks)):
                yield Piece(source, 0, body, (rank,), offset)
