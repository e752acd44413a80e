"""Verbs devices of the host, RNICs and Linux's rdma_rxe, as NICs in real time: pyverbs, of rdma-core, drives them."""
