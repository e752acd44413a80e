// Actions on the registers of T2NA: one access of a pass, with up to four results.
//
// `apply` gets the register's value by reference; an action without a number at its end may leave
// results out, one with a number has as many as that. Registers can also be queues and stacks.

#ifndef _TOFINO2_REGISTERS_
#define _TOFINO2_REGISTERS_

// For the bodies of abstract methods: the entry's address, one bit set of 16 for the outcome of up to four
// comparisons, and the smallest or largest of the parts of a value that a mask selects.
#define P4GEN_ADDRESS(NAME) NAME(@optional bit<1> subword);
#define P4GEN_PREDICATE(NAME) NAME(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, \
                                   @optional in bool cmp3);
#define P4GEN_EXTREME \
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
#define P4GEN_WIDE_EXTREME(POSTMOD) \
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in POSTMOD postmod); \
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in POSTMOD postmod); \
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in POSTMOD postmod); \
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in POSTMOD postmod);
#define P4GEN_QUERIES(U) U P4GEN_ADDRESS(address) U P4GEN_PREDICATE(predicate)
#define P4GEN_GENERIC_QUERIES U P4GEN_ADDRESS(address<U>) U P4GEN_PREDICATE(predicate<U>)

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    P4GEN_QUERIES(U)
    P4GEN_EXTREME
}

extern RegisterAction<T, H, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U execute_log(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U enqueue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U dequeue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U push(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U pop(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    P4GEN_QUERIES(U)
    P4GEN_EXTREME
}

extern DirectRegisterAction2<T, U1, U2> {
    DirectRegisterAction2(DirectRegister<T> reg);
    U1 execute(out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern RegisterAction2<T, H, U1, U2> {
    RegisterAction2(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2);
    U1 execute_log(out U2 rv2);
    U1 enqueue(out U2 rv2);
    U1 dequeue(out U2 rv2);
    U1 push(out U2 rv2);
    U1 pop(out U2 rv2);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern DirectRegisterAction3<T, U1, U2, U3> {
    DirectRegisterAction3(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern RegisterAction3<T, H, U1, U2, U3> {
    RegisterAction3(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    U1 execute_log(out U2 rv2, out U3 rv3);
    U1 enqueue(out U2 rv2, out U3 rv3);
    U1 dequeue(out U2 rv2, out U3 rv3);
    U1 push(out U2 rv2, out U3 rv3);
    U1 pop(out U2 rv2, out U3 rv3);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern DirectRegisterAction4<T, U1, U2, U3, U4> {
    DirectRegisterAction4(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern RegisterAction4<T, H, U1, U2, U3, U4> {
    RegisterAction4(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    U1 execute_log(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 enqueue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 dequeue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 push(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 pop(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

// For tables with d-left hashing: `learn` tells that the entry is to be written.
extern LearnAction<T, H, D, U> {
    LearnAction(Register<T, H> reg);
    U execute(in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    P4GEN_QUERIES(U)
    P4GEN_EXTREME
}

extern LearnAction2<T, H, D, U1, U2> {
    LearnAction2(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern LearnAction3<T, H, D, U1, U2, U3> {
    LearnAction3(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

extern LearnAction4<T, H, D, U1, U2, U3, U4> {
    LearnAction4(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    P4GEN_GENERIC_QUERIES
    P4GEN_EXTREME
}

// On all 128 bits of an entry.
extern MinMaxAction<T, H, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    P4GEN_QUERIES(U)
    P4GEN_WIDE_EXTREME(int<8>)
}

extern MinMaxAction2<T, H, U1, U2> {
    MinMaxAction2(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2);
    P4GEN_GENERIC_QUERIES
    P4GEN_WIDE_EXTREME(int<9>)
}

extern MinMaxAction3<T, H, U1, U2, U3> {
    MinMaxAction3(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3);
    P4GEN_GENERIC_QUERIES
    P4GEN_WIDE_EXTREME(int<9>)
}

extern MinMaxAction4<T, H, U1, U2, U3, U4> {
    MinMaxAction4(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    P4GEN_GENERIC_QUERIES
    P4GEN_WIDE_EXTREME(int<9>)
}

#endif
