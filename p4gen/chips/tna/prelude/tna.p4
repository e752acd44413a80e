// The architecture TNA. Names, parameters and their order are its public interface. The chip is
// chosen by __TARGET_TOFINO__, as with p4c: TNA also runs on Tofino 2, with that chip's widths.

#ifndef _TOFINO1_NATIVE_ARCHITECTURE_
#define _TOFINO1_NATIVE_ARCHITECTURE_

#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 1
#endif

#if __TARGET_TOFINO__ == 1
#include "tofino1_specs.p4"
#elif __TARGET_TOFINO__ == 2
#include "tofino2_specs.p4"
#else
#error TNA needs __TARGET_TOFINO__ to be 1 or 2
#endif

#include "tofino1_arch.p4"

#endif
