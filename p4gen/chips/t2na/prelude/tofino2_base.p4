// Intrinsic metadata of T2NA, and externs that TNA does not have, or has with other parameters.

#ifndef _TOFINO2_P4_BASE_
#define _TOFINO2_P4_BASE_

#define P4GEN_ACCOUNTING , @optional bool true_egress_accounting
// Clears all entries, while packets are forwarded.
#define P4GEN_CLEAR void clear(in T value, @optional in T busy);

#include "tofino_common.p4"
#include "tofino2_registers.p4"

const bit<16> PARSER_ERROR_CSUM_MBE = 16w0x1000;

// Chooses a table's way in d-left hashing.
match_kind { dleft_hash }

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl; // bit 0: unicast and multicast, 1: the copy to the CPU, 2: mirroring
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;
    // Of the mirrored copy.
    bit<1> mirror_io_select;
    bit<13> mirror_hash;
    bit<3> mirror_ingress_cos;
    bit<1> mirror_deflect_on_drop;
    bit<1> mirror_multicast_ctrl;
    PortId_t mirror_egress_port;
    QueueId_t mirror_qid;
    bit<8> mirror_coalesce_length;
    bit<32> adv_flow_ctl;
    bit<14> mtu_trunc_len;
    bit<1> mtu_trunc_err_f;
    // A packet that the packet generator makes for this one.
    bit<1> pktgen;
    bit<14> pktgen_address;
    bit<10> pktgen_length;
}

@__intrinsic_metadata @__ghost_metadata
header ghost_intrinsic_metadata_t {
    bit<1> ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2> pipe_id;
}

@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding bit<(8 - PORT_ID_WIDTH % 8)> _pad0;
    PortId_t egress_port;
    // The queue's length, in cells, and its state when the packet entered it …
    @padding bit<5> _pad1;
    bit<19> enq_qdepth;
    @padding bit<6> _pad2;
    bit<2> enq_congest_stat;
    bit<32> enq_tstamp;
    // … and when it left it; the time is the one spent in the queue.
    @padding bit<5> _pad3;
    bit<19> deq_qdepth;
    @padding bit<6> _pad4;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
    bit<32> deq_timedelta;
    bit<16> egress_rid;
    @padding bit<7> _pad5;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH % 8)> _pad6;
    QueueId_t egress_qid;
    @padding bit<5> _pad7;
    bit<3> egress_cos;
    @padding bit<7> _pad8;
    bit<1> deflection_flag;
    bit<16> pkt_length; // bytes
    @padding bit<8> _pad9;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
    bit<1> mirror_io_select;
    bit<13> mirror_hash;
    bit<3> mirror_ingress_cos;
    bit<1> mirror_deflect_on_drop;
    bit<1> mirror_multicast_ctrl;
    PortId_t mirror_egress_port;
    QueueId_t mirror_qid;
    bit<8> mirror_coalesce_length;
    bit<32> adv_flow_ctl;
    bit<14> mtu_trunc_len;
    bit<1> mtu_trunc_err_f;
}

// Headers in front of packets that the packet generator makes, by what started it.

header pktgen_timer_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16> packet_id;
}

header pktgen_recirc_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_deparser_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    @padding bit<2> _pad1;
    bit<2> pipe_id;
    bit<4> app_id;
    @padding bit<40> _pad2;
}

extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}

extern IdleTimeout {
    IdleTimeout();
}

extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);

// A stack of counters; `set` and `push` compute the field, rotated right and masked, plus a constant.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add);
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

#endif
