// Widths of Tofino 2.

#ifndef _TOFINO2_P4_SPECS_
#define _TOFINO2_P4_SPECS_

#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8

#include "tofino_widths.p4"

typedef MirrorType_t CloneId_t;

// Bits between the intrinsic metadata and the packet, to be skipped or unpacked in ingress.
const bit<32> PORT_METADATA_SIZE = 32w192;

#endif
