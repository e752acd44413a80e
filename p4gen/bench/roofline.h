/* What C loops by hand have in common: the CRCs, fields in network order, and the frames that they send.
 *
 * A loop is a file that defines struct state, struct config, state_size, reset and handle. handle gets one frame, a RoCE
 * packet by its UDP port, and may send frames.
 */
#include <stdint.h>
#include <string.h>

#ifdef __PCLMUL__
#include <immintrin.h>
#endif

#define HEADERS (14 + 20 + 8 + 12)
#define ICRC 4
#define PSN_MASK 0xffffff
#ifndef MOST
#define MOST 1536 /* bytes of a body */
#endif

/* Where fields begin; QP and PSN have a byte before them. */
enum { LENGTH = 16, TTL = 22, CHECKSUM = 24, SOURCE = 26, DESTINATION = 30, UDP = 34, OPCODE = 42, QP = 46, PSN = 50 };

struct out {
    uint8_t *data;
    int64_t *ends;
    int32_t *ports;
    int64_t used, count;
};

static uint32_t table[8][256];

static void make_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++) v = (v >> 1) ^ (v & 1 ? 0xEDB88320u : 0);
        table[0][i] = v;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++) table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 255];
}

static uint32_t crc_bytes(uint32_t crc, const uint8_t *p, size_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= crc;
        crc = table[7][v & 255] ^ table[6][(v >> 8) & 255] ^ table[5][(v >> 16) & 255] ^ table[4][(v >> 24) & 255] ^
              table[3][(v >> 32) & 255] ^ table[2][(v >> 40) & 255] ^ table[1][(v >> 48) & 255] ^ table[0][v >> 56];
    }
    for (; n; p++, n--) crc = (crc >> 8) ^ table[0][(crc ^ *p) & 255];
    return crc;
}

#ifdef __PCLMUL__
#define FOLD(x, k, y) \
    _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0), _mm_clmulepi64_si128(x, k, 0x11)), y)
#define AT(p) _mm_loadu_si128((const __m128i *)(p))

static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n) {
    if (n < 64) return crc_bytes(crc, p, n);
    const __m128i far = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), near = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i low = _mm_set_epi32(0, -1, 0, -1), barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    __m128i a = _mm_xor_si128(AT(p), _mm_cvtsi32_si128((int)crc)), b = AT(p + 16), c = AT(p + 32), d = AT(p + 48);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = FOLD(a, far, AT(p));
        b = FOLD(b, far, AT(p + 16));
        c = FOLD(c, far, AT(p + 32));
        d = FOLD(d, far, AT(p + 48));
    }
    a = FOLD(a, near, b);
    a = FOLD(a, near, c);
    a = FOLD(a, near, d);
    for (; n >= 16; p += 16, n -= 16) a = FOLD(a, near, AT(p));
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, near, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(a, low), _mm_cvtsi64_si128(0x163cd6124), 0));
    __m128i q = _mm_clmulepi64_si128(_mm_and_si128(a, low), barrett, 0x10);
    a = _mm_xor_si128(a, _mm_clmulepi64_si128(_mm_and_si128(q, low), barrett, 0));
    return crc_bytes((uint32_t)_mm_extract_epi32(a, 1), p, n);
}
#else
#define crc32 crc_bytes
#endif

/* The invariant CRC of a frame with a body of so many bytes behind the BTH. */
static inline uint32_t icrc(const uint8_t *frame, size_t body) {
    uint8_t head[48 + MOST];
    memset(head, 0xff, 8);
    memcpy(head + 8, frame + 14, 40);
    head[8 + 1] = head[8 + 8] = head[8 + 10] = head[8 + 11] = 0xff; /* TOS, TTL, checksum */
    head[8 + 26] = head[8 + 27] = 0xff;                             /* UDP checksum */
    head[8 + 32] = 0xff;                                            /* resv8a */
    memcpy(head + 48, frame + HEADERS, body);
    return ~crc32(0xffffffffu, head, 48 + body);
}

static uint16_t ip_sum(const uint8_t *p) {
    uint64_t total = 0;
    for (int i = 0; i < 20; i += 4) {
        uint32_t v;
        memcpy(&v, p + i, 4);
        total += v;
    }
    total = (total & 0xffffffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    return (uint16_t)~total; /* in the machine's order, as it is stored */
}

static inline uint32_t be32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline void put32(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

static uint64_t be64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}

static void put_mac(uint8_t *p, uint64_t mac) {
    mac = __builtin_bswap64(mac << 16);
    memcpy(p, &mac, 6);
}

static uint16_t be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static void put16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 8), p[1] = (uint8_t)v; }

static uint32_t be24(const uint8_t *p) { return be32(p - 1) & PSN_MASK; }

static void put24(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 16), put16(p + 1, v); }

/* Whether the ICRC of a frame of so many bytes is right. */
static inline int whole(const uint8_t *frame, size_t size) {
    uint32_t crc = icrc(frame, size - HEADERS - ICRC);
    return !memcmp(&crc, frame + size - ICRC, ICRC);
}

static inline void put_ip_sum(uint8_t *frame) {
    memset(frame + CHECKSUM, 0, 2);
    uint16_t sum = ip_sum(frame + 14);
    memcpy(frame + CHECKSUM, &sum, 2);
}

/* Send the frame of so many bytes that is behind those sent before. */
static inline void send(struct out *out, size_t size, uint32_t port) {
    out->used += (int64_t)size;
    out->ends[out->count] = out->used;
    out->ports[out->count++] = (int32_t)port;
}

/* Put the ICRC behind that frame, which has a body of so many bytes, and send it. */
static inline void seal(struct out *out, size_t body, uint32_t port) {
    uint8_t *frame = out->data + out->used;
    uint32_t crc = icrc(frame, body);
    memcpy(frame + HEADERS + body, &crc, ICRC);
    send(out, HEADERS + body + ICRC, port);
}

struct edge {
    uint64_t remote_mac, local_mac;
    uint32_t remote_ip, local_ip, remote_qp, local_qp, port, udp_src_port;
};

/* The next frame to send: the headers of one that has come, translated for an edge, without the IPv4 checksum. */
static inline uint8_t *translated(struct out *out, const uint8_t *frame, const struct edge *edge, uint32_t psn) {
    uint8_t *to = out->data + out->used;
    memcpy(to, frame, HEADERS);
    put_mac(to, edge->remote_mac);
    put_mac(to + 6, edge->local_mac);
    put32(to + SOURCE, edge->local_ip);
    put32(to + DESTINATION, edge->remote_ip);
    to[TTL] = 64;
    put16(to + UDP, edge->udp_src_port);
    put16(to + UDP + 6, 0);
    put24(to + QP + 1, edge->remote_qp);
    put32(to + PSN, psn & PSN_MASK);
    return to;
}

/* Set the lengths of a frame with a body of so many bytes behind the BTH, and the IPv4 checksum. */
static inline void put_lengths(uint8_t *frame, uint32_t body) {
    put16(frame + LENGTH, 20 + 8 + 12 + body + ICRC);
    put16(frame + UDP + 4, 8 + 12 + body + ICRC);
    put_ip_sum(frame);
}

static inline void send_ack(struct out *out, const uint8_t *frame, const struct edge *edge, uint32_t psn, uint32_t msn) {
    uint8_t *to = translated(out, frame, edge, psn);
    put_lengths(to, 4);
    to[OPCODE] = 17;
    put32(to + HEADERS, 0x1f000000 | msn);
    seal(out, 4, edge->port);
}

/* Whether a frame is an ACK, not a NAK, with a right ICRC. */
static inline int is_ack(const uint8_t *frame, size_t size) {
    return frame[OPCODE] == 17 && size == HEADERS + 4 + ICRC && !(frame[HEADERS] & 0x60) && whole(frame, HEADERS + 4 + ICRC);
}

#ifdef LANES
static inline void take_lanes(int32_t *held, const uint8_t *lanes) {
    for (int k = 0; k < LANES; k++) held[k] = (int32_t)be32(lanes + 4 * k);
}

/* Sums saturate. */
static inline void add_lanes(int32_t *held, const uint8_t *lanes) {
    for (int k = 0; k < LANES; k++) {
        int32_t a = held[k], b = (int32_t)be32(lanes + 4 * k), sum = (int32_t)((uint32_t)a + (uint32_t)b);
        int32_t limit = (a >> 31) ^ INT32_MAX;
        held[k] = (~(a ^ b) & (a ^ sum)) < 0 ? limit : sum;
    }
}

static inline void put_lanes(uint8_t *to, const int32_t *held) {
    for (int k = 0; k < LANES; k++) put32(to + 4 * k, (uint32_t)held[k]);
}
#endif

struct state;
struct config;
static void handle(struct state *state, const struct config *config, const uint8_t *frame, size_t size, int32_t port,
                   struct out *out);

static int is_roce(const uint8_t *frame, size_t size) {
    return size >= HEADERS + ICRC && size <= HEADERS + MOST + ICRC && be16(frame + 12) == 0x0800 &&
           frame[14] == 0x45 && frame[23] == 17 && be16(frame + UDP + 2) == 4791 && !ip_sum(frame + 14);
}

/* Handle n frames. Returns the number of frames sent. */
long roofline(struct state *state, const struct config *config, const uint8_t *data, const int64_t *offsets,
              const int32_t *ports, long n, uint8_t *sent, int64_t *ends, int32_t *sent_ports) {
    struct out out = {sent, ends, sent_ports, 0, 0};
    if (!table[0][1]) make_table();
    for (long i = 0; i < n; i++) {
        const uint8_t *frame = data + offsets[i];
        size_t size = (size_t)(offsets[i + 1] - offsets[i]);
        if (is_roce(frame, size)) handle(state, config, frame, size, ports[i], &out);
    }
    return out.count;
}
