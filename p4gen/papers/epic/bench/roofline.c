/* The roofline: what a generated Mode-II program does to a contribution, by hand and for that alone.
 *
 * Parse, check the IPv4 checksum and the ICRC, find the slot, add with saturation, and, when a slot is complete, emit
 * one copy for each edge with new addresses, checksum and ICRC. No tables, no counters, no other traffic. LANES and
 * SLOTS come from the command line. Built with the best the machine has (-O3 -march=native).
 */
#include <stdint.h>
#include <string.h>

#ifdef __PCLMUL__
#include <immintrin.h>
#endif

#define PAYLOAD (4 * LANES)
#define HEADERS (14 + 20 + 8 + 12)
#define FRAME (HEADERS + PAYLOAD + 4)

struct edge {
    uint64_t remote_mac, local_mac;
    uint32_t remote_ip, local_ip, remote_qp, local_qp, port, udp_src_port;
};

struct state {
    uint64_t slot[SLOTS]; /* epoch, PSN, opcode as one word */
    uint32_t bitmap[SLOTS];
    int32_t partial[SLOTS][LANES];
};

static uint32_t table[8][256];

void roofline_init(void) {
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

static uint32_t icrc(const uint8_t *frame) {
    uint8_t head[48 + PAYLOAD];
    memset(head, 0xff, 8);
    memcpy(head + 8, frame + 14, 40);
    head[8 + 1] = head[8 + 8] = head[8 + 10] = head[8 + 11] = 0xff; /* TOS, TTL, checksum */
    head[8 + 26] = head[8 + 27] = 0xff;                             /* UDP checksum */
    head[8 + 32] = 0xff;                                            /* resv8a */
    memcpy(head + 48, frame + HEADERS, PAYLOAD);
    return ~crc32(0xffffffffu, head, sizeof head);
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

static uint32_t be32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static void put32(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static void put_mac(uint8_t *p, uint64_t mac) {
    mac = __builtin_bswap64(mac << 16);
    memcpy(p, &mac, 6);
}

/* Gives the number of frames in out, each FRAME bytes, their ports in out_ports. */
long roofline(struct state *s, const struct edge *edges, int fan_in, const uint8_t *data, const int64_t *offsets,
              long n, uint8_t *out, int32_t *out_ports) {
    long sent = 0;
    for (long i = 0; i < n; i++) {
        const uint8_t *frame = data + offsets[i];
        if (offsets[i + 1] - offsets[i] != FRAME || frame[12] != 8 || frame[13] || frame[14] != 0x45 ||
            frame[23] != 17 || be32(frame + 36) >> 16 != 4791 || ip_sum(frame + 14))
            continue;
        uint32_t qp = be32(frame + 46) & 0xffffff, psn = be32(frame + 50) & 0xffffff;
        int edge = 0;
        while (edge < fan_in && edges[edge].local_qp != qp) edge++;
        if (edge == fan_in || edges[edge].remote_ip != be32(frame + 26) || edges[edge].local_ip != be32(frame + 30))
            continue;
        uint32_t crc = icrc(frame);
        if (memcmp(&crc, frame + HEADERS + PAYLOAD, 4)) continue;
        uint32_t index = psn % SLOTS, bit = 1u << edge;
        uint64_t word = (1ull << 56) | ((uint64_t)psn << 8) | frame[42];
        int32_t *held = s->partial[index];
        const uint8_t *lanes = frame + HEADERS;
        if (s->slot[index] == word) {
            if (s->bitmap[index] & bit) continue;
            s->bitmap[index] |= bit;
            for (int k = 0; k < LANES; k++) {
                int32_t a = held[k], b = (int32_t)be32(lanes + 4 * k), sum = (int32_t)((uint32_t)a + (uint32_t)b);
                int32_t edge_value = (a >> 31) ^ INT32_MAX;
                held[k] = (~(a ^ b) & (a ^ sum)) < 0 ? edge_value : sum;
            }
        } else {
            s->slot[index] = word;
            s->bitmap[index] = bit;
            for (int k = 0; k < LANES; k++) held[k] = (int32_t)be32(lanes + 4 * k);
        }
        if (s->bitmap[index] != (1u << fan_in) - 1) continue;
        for (int e = 0; e < fan_in; e++) {
            uint8_t *to = out + sent * FRAME;
            memcpy(to, frame, HEADERS);
            put_mac(to, edges[e].remote_mac);
            put_mac(to + 6, edges[e].local_mac);
            put32(to + 26, edges[e].local_ip);
            put32(to + 30, edges[e].remote_ip);
            to[22] = 64;
            to[34] = (uint8_t)(edges[e].udp_src_port >> 8), to[35] = (uint8_t)edges[e].udp_src_port;
            to[40] = to[41] = 0;
            to[24] = to[25] = 0;
            uint16_t sum = ip_sum(to + 14);
            memcpy(to + 24, &sum, 2);
            to[47] = (uint8_t)(edges[e].remote_qp >> 16);
            to[48] = (uint8_t)(edges[e].remote_qp >> 8);
            to[49] = (uint8_t)edges[e].remote_qp;
            for (int k = 0; k < LANES; k++) put32(to + HEADERS + 4 * k, (uint32_t)held[k]);
            crc = icrc(to);
            memcpy(to + HEADERS + PAYLOAD, &crc, 4);
            out_ports[sent++] = (int32_t)edges[e].port;
        }
    }
    return sent;
}
