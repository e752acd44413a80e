// Intrinsic metadata and registers of TNA. Widths come from the file of the chip, tofino1_specs.p4
// or tofino2_specs.p4.

#ifndef _TOFINO1_P4_BASE_
#define _TOFINO1_P4_BASE_

#define P4GEN_ACCOUNTING
#define P4GEN_CLEAR

#include "tofino_common.p4"

const bit<16> PARSER_ERROR_DST_CONT = 16w0x0040;

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl; // bit 0: unicast and multicast, 1: the copy to the CPU, 2: mirroring
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;
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
    @padding bit<14> _pad3;
    bit<18> enq_tstamp;
    // … and when it left it; the time is the one spent in the queue.
    @padding bit<5> _pad4;
    bit<19> deq_qdepth;
    @padding bit<6> _pad5;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
    @padding bit<14> _pad6;
    bit<18> deq_timedelta;
    bit<16> egress_rid;
    @padding bit<7> _pad7;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH % 8)> _pad8;
    QueueId_t egress_qid;
    @padding bit<5> _pad9;
    bit<3> egress_cos;
    @padding bit<7> _pad10;
    bit<1> deflection_flag;
    bit<16> pkt_length; // bytes
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
}

// Headers in front of packets that the packet generator makes, by what started it.

header pktgen_timer_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    @padding bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16> packet_id;
}

header pktgen_recirc_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    bit<24> key;
    bit<16> packet_id;
}

// The one access of a pass: `execute` gives `apply` the register's value at `index` by reference
// and returns what `apply` sets `rv` to.
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index);
    // With an index that counts the executions.
    U execute_log();
    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);
    // In `apply`: one bit set of 4, for the outcome of up to two comparisons.
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute();
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // The field, rotated right, cut to mask + 1 bits, plus a constant.
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<3> mask, in bit<8> add);
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);

#endif
