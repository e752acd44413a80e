// The P4_16 core library, as appendix D of the language specification defines it.
// The guard's name is public: programs test whether the library is there.

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    // extract or lookahead ran past the end of the packet.
    PacketTooShort,
    // No case of a select expression matches.
    NoMatch,
    // next, last or an index went outside a header stack.
    StackOutOfBounds,
    // A varbit field was given more bits than it can hold.
    HeaderTooShort,
    ParserTimeout,
    // A parser operation was called with a value the target does not support.
    ParserInvalidArgument
}

extern packet_in {
    void extract<T>(out T hdr);
    // For headers with one varbit field, which gets the given number of bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    // In bytes.
    bit<32> length();
}

extern packet_out {
    // Appends a header if it is valid; structs, stacks and unions member by member.
    void emit<T>(in T hdr);
}

extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
