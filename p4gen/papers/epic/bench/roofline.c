/* The roofline: what a generated program does to an AllReduce's packets, by hand and for that alone.
 *
 * Parse, check the IPv4 checksum and the ICRC, find the slot, add with saturation, and, when a slot is complete, emit
 * one copy for each edge with new addresses, checksum and ICRC. In Modes I and III (MODE 1 and 3) packets are taken in
 * order and within the range, acknowledged where they ask for it, and ACKs move the range. No tables, no counters, no
 * losses, no other traffic. MODE, LANES, SLOTS and EDGES come from the command line.
 */
#include "roofline.h"

#define PAYLOAD (4 * LANES)
#define ORDERED (MODE != 2)

struct config {
    struct edge edges[EDGES];
    struct {
        uint32_t received, sent;
    } first[EDGES]; /* PSNs */
};

struct state {
    uint64_t slot[SLOTS]; /* epoch, position, opcode as one word */
    uint32_t bitmap[SLOTS], asks[SLOTS];
    uint32_t next[EDGES], acked[EDGES], messages[EDGES], start, sent;
    int32_t partial[SLOTS][LANES];
};

long state_size(void) { return sizeof(struct state); }

/* The announcement is position 0. It has been sent on, and nobody has acknowledged it. */
void reset(struct state *s) {
    memset(s, 0, sizeof *s);
    s->sent = 1;
    for (int e = 0; e < EDGES; e++) s->next[e] = s->messages[e] = 1, s->acked[e] = ~0u;
}

static void move_range(struct state *s, int edge, uint32_t position) {
    if (position >= s->sent || (int32_t)(position - s->acked[edge]) < 0) return;
    s->acked[edge] = position;
    uint32_t lowest = s->acked[0];
    for (int e = 1; e < EDGES; e++)
        if ((int32_t)(s->acked[e] - lowest) < 0) lowest = s->acked[e];
    s->start = lowest + 1;
}

static void handle(struct state *s, const struct config *config, const uint8_t *frame, size_t size, int32_t port,
                   struct out *out) {
    const struct edge *edges = config->edges;
    uint32_t qp = be24(frame + QP + 1), psn = be24(frame + PSN + 1), asks = frame[PSN] >> 7;
    int edge = 0;
    while (edge < EDGES && edges[edge].local_qp != qp) edge++;
    if (edge == EDGES || edges[edge].remote_ip != be32(frame + SOURCE) ||
        edges[edge].local_ip != be32(frame + DESTINATION) || edges[edge].port != (uint32_t)port)
        return;
    if (ORDERED && frame[OPCODE] == 17) {
        if (is_ack(frame, size)) move_range(s, edge, (psn - config->first[edge].sent) & PSN_MASK);
        return;
    }
    if (size != HEADERS + PAYLOAD + ICRC || !whole(frame, HEADERS + PAYLOAD + ICRC)) return;
    uint32_t position = (psn - config->first[edge].received) & PSN_MASK;
    if (ORDERED) {
        if (position != s->next[edge] || position - s->start >= SLOTS) return;
        s->next[edge]++;
        s->messages[edge] += frame[OPCODE] > 1;
        if (asks) send_ack(out, frame, &edges[edge], psn, s->messages[edge]);
    }
    uint32_t index = position % SLOTS, bit = 1u << edge;
    uint64_t word = (1ull << 56) | ((uint64_t)position << 8) | frame[OPCODE];
    int32_t *held = s->partial[index];
    if (s->slot[index] == word) {
        if (s->bitmap[index] & bit) return;
        s->bitmap[index] |= bit;
        s->asks[index] |= asks;
        add_lanes(held, frame + HEADERS);
    } else {
        s->slot[index] = word;
        s->bitmap[index] = bit;
        s->asks[index] = asks;
        take_lanes(held, frame + HEADERS);
    }
    if (s->bitmap[index] != (1u << EDGES) - 1) return;
    s->sent = position + 1;
    uint32_t flag = (MODE == 1 ? 1 : s->asks[index]) << 31;
    for (int e = 0; e < EDGES; e++) {
        uint8_t *to = translated(out, frame, &edges[e], position + config->first[e].sent);
        put_ip_sum(to);
        to[PSN] = (uint8_t)(flag >> 24);
        put_lanes(to + HEADERS, held);
        seal(out, PAYLOAD, edges[e].port);
    }
}
