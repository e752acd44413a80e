/* The roofline: what a switch does to writes to several destinations and their ACKs, by hand and for that alone.
 *
 * A write is checked (IPv4 checksum, ICRC, key, place, order, range) and leaves by each edge behind which it has a
 * destination, numbered anew, with that destination's address and key, checksum and ICRC. An ACK is checked; when it
 * was the last one for the oldest writes, the source gets one. No tables, no counters, no losses, no other traffic.
 * CONTEXTS, EDGES, PAYLOAD and SLOTS, the writes that may be outstanding, come from the command line.
 */
#include "roofline.h"

#define ENDPOINTS 1024
#define RETH 16
#define IMMEDIATE 4
#define BODY (RETH + IMMEDIATE + PAYLOAD)

struct config {
    struct endpoint {
        uint32_t qp, context, edge; /* counted from 0 */
    } endpoints[ENDPOINTS];         /* by the low bits of the QP */
    struct context {
        uint64_t last_place;
        uint32_t source, key;
        struct edge edges[EDGES];
        struct window {
            uint64_t base;
            uint32_t key, reach;
        } windows[EDGES];
    } contexts[CONTEXTS];
};

struct state {
    struct {
        uint32_t next, start;
        struct {
            uint32_t next, acked, low, waits;
            uint32_t sources[SLOTS]; /* by the PSN of a copy: that of the write */
        } edges[EDGES];
    } contexts[CONTEXTS];
};

long state_size(void) { return sizeof(struct state); }

void reset(struct state *s) {
    memset(s, 0, sizeof *s);
    for (int c = 0; c < CONTEXTS; c++)
        for (int e = 0; e < EDGES; e++) s->contexts[c].edges[e].acked = PSN_MASK;
}

static int before(uint32_t a, uint32_t b) { return (a - b) >> 23 & 1; }

static void take_write(struct state *s, const struct context *context, uint32_t number, const uint8_t *frame, size_t size,
                       struct out *out) {
    const uint8_t *reth = frame + HEADERS;
    uint64_t place = be64(reth);
    uint32_t bitmap = be32(reth + RETH), psn = be24(frame + PSN + 1), known = 0, mask = 0;
    if (frame[OPCODE] != 11 || size != HEADERS + BODY + ICRC || !whole(frame, HEADERS + BODY + ICRC)) return;
    if (be32(reth + 8) != context->key || be32(reth + 12) != PAYLOAD || place > context->last_place) return;
    for (int e = 0; e < EDGES; e++) {
        known |= context->windows[e].reach;
        mask |= (uint32_t)((bitmap & context->windows[e].reach) != 0) << e;
    }
    if (!bitmap || bitmap & ~known || psn != s->contexts[number].next) return;
    if (((psn - s->contexts[number].start) & PSN_MASK) >= SLOTS) return;
    s->contexts[number].next = (psn + 1) & PSN_MASK;
    for (; mask; mask &= mask - 1) {
        int e = __builtin_ctz(mask);
        uint32_t copy = s->contexts[number].edges[e].next;
        s->contexts[number].edges[e].next = (copy + 1) & PSN_MASK;
        s->contexts[number].edges[e].sources[copy % SLOTS] = psn;
        if (!s->contexts[number].edges[e].waits) s->contexts[number].edges[e].low = psn;
        s->contexts[number].edges[e].waits = 1;
        uint8_t *to = translated(out, frame, &context->edges[e], copy);
        put_lengths(to, RETH + PAYLOAD);
        to[OPCODE] = 10;
        to[PSN] = 0x80;
        put64(to + HEADERS, context->windows[e].base + place);
        put32(to + HEADERS + 8, context->windows[e].key);
        put32(to + HEADERS + 12, PAYLOAD);
        memcpy(to + HEADERS + RETH, reth + RETH + IMMEDIATE, PAYLOAD);
        seal(out, RETH + PAYLOAD, context->edges[e].port);
    }
}

static void take_ack(struct state *s, const struct context *context, uint32_t number, uint32_t edge, const uint8_t *frame,
                     struct out *out) {
    uint32_t psn = be24(frame + PSN + 1), next = s->contexts[number].edges[edge].next;
    if (before(psn, next) && before(s->contexts[number].edges[edge].acked, psn)) {
        uint32_t following = (psn + 1) & PSN_MASK;
        s->contexts[number].edges[edge].acked = psn;
        s->contexts[number].edges[edge].low = s->contexts[number].edges[edge].sources[following % SLOTS];
        s->contexts[number].edges[edge].waits = following != next;
    }
    uint32_t lowest = s->contexts[number].next;
    for (int e = 0; e < EDGES; e++)
        if (s->contexts[number].edges[e].waits && before(s->contexts[number].edges[e].low, lowest))
            lowest = s->contexts[number].edges[e].low;
    if (!before(s->contexts[number].start, lowest)) return;
    s->contexts[number].start = lowest;
    send_ack(out, frame, &context->edges[context->source], lowest - 1, lowest);
}

static void handle(struct state *s, const struct config *config, const uint8_t *frame, size_t size, int32_t port,
                   struct out *out) {
    uint32_t qp = be24(frame + QP + 1);
    const struct endpoint *endpoint = &config->endpoints[qp % ENDPOINTS];
    const struct context *context = &config->contexts[endpoint->context];
    const struct edge *edge = &context->edges[endpoint->edge];
    if (endpoint->qp != qp || edge->local_ip != be32(frame + DESTINATION) || edge->remote_ip != be32(frame + SOURCE) ||
        edge->port != (uint32_t)port)
        return;
    if (endpoint->edge == context->source) take_write(s, context, endpoint->context, frame, size, out);
    else if (is_ack(frame, size)) take_ack(s, context, endpoint->context, endpoint->edge, frame, out);
}
