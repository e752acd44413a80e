/* The roofline: what the leaf switches of a source and of a destination do to requests, by hand and for that alone.
 *
 * Parse, check the IPv4 checksum, find the connection, its packet's path and the next hop, and send the packet on with
 * new MAC addresses and one TTL less. The source's switch (DELIVERED 0) adds the path to the choice of a hash; the
 * destination's checks the ICRC and records the PSN with its path. No tables, no counters, no NACKs, no other traffic.
 * DELIVERED, CONNECTIONS, PATHS and QUEUE come from the command line.
 */
#include "roofline.h"

#define FLOWS 256

struct config {
    struct flow {
        uint32_t source, destination, qp, connection;
    } flows[FLOWS]; /* by the low bits of the QP */
    struct hop {
        uint64_t destination_mac, source_mac;
    } hops[PATHS + 1]; /* by port: the host's, and the spines' */
};

struct state {
    uint16_t filled[CONNECTIONS];
    uint16_t next[CONNECTIONS];
    uint32_t queue[CONNECTIONS][QUEUE]; /* path and PSN */
    uint8_t waits[CONNECTIONS];         /* a NACK for a packet that may still come */
};

long state_size(void) { return sizeof(struct state); }

static uint16_t crc16_table[256];

void reset(struct state *s) {
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++) v = (v >> 1) ^ (v & 1 ? 0xA001u : 0);
        crc16_table[i] = (uint16_t)v;
    }
}

static uint32_t crc16(uint32_t crc, const uint8_t *p, int n) {
    for (int i = 0; i < n; i++) crc = (crc >> 8) ^ crc16_table[(crc ^ p[i]) & 255];
    return crc;
}

static void handle(struct state *s, const struct config *config, const uint8_t *frame, size_t size, int32_t port,
                   struct out *out) {
    uint32_t psn = be24(frame + PSN + 1), qp = be24(frame + QP + 1);
    const struct flow *flow = &config->flows[qp % FLOWS];
    if (flow->destination != be32(frame + DESTINATION) || flow->qp != qp || flow->source != be32(frame + SOURCE) ||
        frame[TTL] < 2 || frame[OPCODE] >= 12)
        return;
    uint32_t path = psn % PATHS, to;
    if (DELIVERED) {
        if (!whole(frame, size)) return;
        uint32_t connection = flow->connection, place = s->next[connection];
        s->queue[connection][place] = path << 16 | (psn & 0xffff);
        s->next[connection] = (uint16_t)((place + 1) % QUEUE);
        s->filled[connection] += s->filled[connection] != QUEUE;
        if (s->waits[connection]) return;
        to = 0;
    } else {
        uint32_t hash = crc16(crc16(0, frame + SOURCE, 8), frame + 23, 1);
        to = crc16(hash, frame + UDP, 4) % PATHS + path;
        to = 1 + (to >= PATHS ? to - PATHS : to);
    }
    uint8_t *copy = out->data + out->used;
    memcpy(copy, frame, size);
    put_mac(copy, config->hops[to].destination_mac);
    put_mac(copy + 6, config->hops[to].source_mac);
    copy[TTL]--;
    uint32_t sum = (uint16_t)~be16(frame + CHECKSUM) + 0xfeff;
    put16(copy + CHECKSUM, ~(sum + (sum >> 16)));
    send(out, size, to);
}
