// Widths of Tofino 1.

#ifndef _TOFINO1_P4_SPECS_
#define _TOFINO1_P4_SPECS_

#define QUEUE_ID_WIDTH 5
#define MIRROR_TYPE_WIDTH 3
#define MIRROR_ID_WIDTH 10

#include "tofino_widths.p4"

// Bits between the intrinsic metadata and the packet, to be skipped or unpacked in ingress.
const bit<32> PORT_METADATA_SIZE = 32w64;

#endif
