/* The roofline: what a switch does to the packets of AllReduces, by hand and for that alone.
 *
 * Ranks arrive at a call and are acknowledged; the last one makes the switch read waves of their operands, as many as
 * it has slots for. Data is checked (IPv4 checksum, ICRC, order) and added with saturation; a complete slot leaves as a
 * WRITE to each rank. An ACK of all ranks makes it read the next wave, the last one write their flags. No tables, no
 * counters, no losses, no other traffic. CONTEXTS, EDGES, LANES, SLOTS and WAVE come from the command line.
 */
#include "roofline.h"

#define PAYLOAD (4 * LANES)
#define ENDPOINTS 1024
#define RETH 16
#define AETH 4
#define BUFFERS 24
#define FLAG 8

enum { SYNC, READ, WRITE, ROLES };

struct config {
    struct endpoint {
        uint32_t qp, context, edge, role; /* counted from 0 */
    } endpoints[ENDPOINTS];               /* by the low bits of the QP */
    struct context {
        struct edge edges[EDGES][ROLES];
        struct flag {
            uint64_t address;
            uint32_t key, unused;
        } flags[EDGES];
    } contexts[CONTEXTS];
};

struct memory {
    uint64_t address;
    uint32_t key;
};

struct state {
    struct call {
        uint32_t number, first, end, next_read, next_write, arrived, flagged, announced;
        uint32_t following[EDGES], acked[EDGES], held[SLOTS], bitmap[SLOTS];
        struct memory operands[EDGES], results[EDGES];
        int32_t partial[SLOTS][LANES];
    } calls[CONTEXTS];
};

#define EVERYBODY ((1u << EDGES) - 1)

long state_size(void) { return sizeof(struct state); }

void reset(struct state *s) {
    memset(s, 0, sizeof *s);
    for (int c = 0; c < CONTEXTS; c++) {
        s->calls[c].number = PSN_MASK;
        for (int e = 0; e < EDGES; e++) s->calls[c].acked[e] = PSN_MASK;
    }
}

static int before(uint32_t a, uint32_t b) { return (a - b) >> 23 & 1; }

static uint8_t *leave(struct out *out, const uint8_t *frame, const struct edge *edge, uint32_t psn, uint8_t opcode,
                      uint32_t body) {
    uint8_t *to = translated(out, frame, edge, psn);
    to[15] = to[18] = to[19] = 0;
    put_lengths(to, body);
    to[OPCODE] = opcode;
    to[OPCODE + 1] &= 0x7f;
    return to;
}

static void put_reth(uint8_t *to, const struct memory *memory, uint64_t offset, uint32_t length) {
    put64(to + HEADERS, memory->address + offset);
    put32(to + HEADERS + 8, memory->key);
    put32(to + HEADERS + 12, length);
}

static uint32_t acknowledged(const struct call *call) {
    uint32_t lowest = call->end;
    for (int e = 0; e < EDGES; e++)
        if (before(call->acked[e], lowest)) lowest = call->acked[e];
    return lowest;
}

static void read_waves(struct call *call, const struct context *context, const uint8_t *frame, struct out *out) {
    uint32_t lowest = acknowledged(call);
    for (;;) {
        uint32_t next = call->next_read, count = call->end - next;
        if (count > WAVE) count = WAVE;
        if (!count || ((next + WAVE - lowest - 1) & PSN_MASK) > SLOTS) return;
        for (int e = 0; e < EDGES; e++) {
            uint8_t *to = leave(out, frame, &context->edges[e][READ], next, 12, RETH);
            to[PSN] = 0x80;
            put_reth(to, &call->operands[e], (uint64_t)(next - call->first) * PAYLOAD, count * PAYLOAD);
            seal(out, RETH, context->edges[e][READ].port);
        }
        call->next_read = next + count;
    }
}

static void take_arrival(struct call *call, const struct context *context, uint32_t edge, const uint8_t *frame, size_t size,
                         struct out *out) {
    const uint8_t *buffers = frame + HEADERS + 4;
    uint32_t psn = be24(frame + PSN + 1), announced = be32(frame + HEADERS);
    if (frame[OPCODE] != 5 || size != HEADERS + 4 + BUFFERS + ICRC || !whole(frame, HEADERS + 4 + BUFFERS + ICRC)) return;
    if (psn != ((call->number + 1) & PSN_MASK) || announced >> 24) return;
    if (call->arrived && call->announced != announced) return;
    call->announced = announced;
    call->operands[edge] = (struct memory){be64(buffers), be32(buffers + 8)};
    call->results[edge] = (struct memory){be64(buffers + 12), be32(buffers + 20)};
    uint8_t *to = leave(out, frame, &context->edges[edge][SYNC], psn, 17, AETH);
    put32(to + HEADERS, 0x1f000000 | ((psn + 1) & PSN_MASK));
    seal(out, AETH, context->edges[edge][SYNC].port);
    call->arrived |= 1u << edge;
    if (call->arrived != EVERYBODY) return;
    call->arrived = call->flagged = 0;
    call->number = psn;
    call->first = call->end;
    call->end += announced;
    read_waves(call, context, frame, out);
}

static void take_data(struct call *call, const struct context *context, uint32_t edge, const uint8_t *frame, size_t size,
                      struct out *out) {
    uint32_t psn = be24(frame + PSN + 1), opcode = frame[OPCODE], index = psn % SLOTS, bit = 1u << edge;
    const uint8_t *lanes = frame + HEADERS + (opcode == 14 ? 0 : AETH);
    int32_t *partial = call->partial[index];
    if (opcode < 13 || opcode > 16 || size != (size_t)(lanes - frame) + PAYLOAD + ICRC || !whole(frame, size)) return;
    if (!before(psn, call->next_read) || psn != call->following[edge]) return;
    call->following[edge] = (psn + 1) & PSN_MASK;
    if (call->held[index] != psn + 1) {
        call->held[index] = psn + 1;
        call->bitmap[index] = bit;
        take_lanes(partial, lanes);
    } else {
        if (call->bitmap[index] & bit) return;
        call->bitmap[index] |= bit;
        add_lanes(partial, lanes);
    }
    if (call->bitmap[index] != EVERYBODY || psn != call->next_write) return;
    call->next_write = (psn + 1) & PSN_MASK;
    uint32_t offset = psn - call->first, asks = offset % WAVE == WAVE - 1 || psn == call->end - 1;
    for (int e = 0; e < EDGES; e++) {
        uint8_t *to = leave(out, frame, &context->edges[e][WRITE], psn, 10, RETH + PAYLOAD);
        to[PSN] = (uint8_t)(asks << 7);
        put_reth(to, &call->results[e], (uint64_t)offset * PAYLOAD, PAYLOAD);
        put_lanes(to + HEADERS + RETH, partial);
        seal(out, RETH + PAYLOAD, context->edges[e][WRITE].port);
    }
}

static void take_ack(struct call *call, const struct context *context, uint32_t edge, const uint8_t *frame, struct out *out) {
    uint32_t psn = be24(frame + PSN + 1), earlier = acknowledged(call);
    if (!before(psn, call->next_write)) return;
    if (before(call->acked[edge], psn)) call->acked[edge] = psn;
    uint32_t lowest = acknowledged(call);
    read_waves(call, context, frame, out);
    if (lowest != call->end - 1 || earlier == lowest) return;
    for (int e = 0; e < EDGES; e++) {
        uint8_t *to = leave(out, frame, &context->edges[e][SYNC], call->number, 11, RETH + 4 + FLAG);
        to[PSN] = 0x80;
        put_reth(to, &(struct memory){context->flags[e].address, context->flags[e].key}, 0, FLAG);
        put32(to + HEADERS + RETH, call->number);
        put64(to + HEADERS + RETH + 4, (uint64_t)call->number << 40);
        seal(out, RETH + 4 + FLAG, context->edges[e][SYNC].port);
    }
}

static void handle(struct state *s, const struct config *config, const uint8_t *frame, size_t size, int32_t port,
                   struct out *out) {
    uint32_t qp = be24(frame + QP + 1);
    const struct endpoint *endpoint = &config->endpoints[qp % ENDPOINTS];
    const struct context *context = &config->contexts[endpoint->context];
    const struct edge *edge = &context->edges[endpoint->edge][endpoint->role];
    struct call *call = &s->calls[endpoint->context];
    if (endpoint->qp != qp || edge->local_ip != be32(frame + DESTINATION) || edge->remote_ip != be32(frame + SOURCE) ||
        edge->port != (uint32_t)port)
        return;
    if (endpoint->role == READ) take_data(call, context, endpoint->edge, frame, size, out);
    else if (endpoint->role == SYNC && frame[OPCODE] != 17) take_arrival(call, context, endpoint->edge, frame, size, out);
    else if (!is_ack(frame, size)) return;
    else if (endpoint->role == WRITE) take_ack(call, context, endpoint->edge, frame, out);
    else if (be24(frame + PSN + 1) == call->number) call->flagged |= 1u << endpoint->edge;
}
