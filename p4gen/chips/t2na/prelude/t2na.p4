// The architecture T2NA, of Tofino 2. Names, parameters and their order are its public interface.

#ifndef _TOFINO2_NATIVE_ARCHITECTURE_
#define _TOFINO2_NATIVE_ARCHITECTURE_

#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 2
#endif

#if __TARGET_TOFINO__ != 2
#error T2NA needs __TARGET_TOFINO__ to be 2
#endif

#include "tofino2_specs.p4"
#include "tofino2_arch.p4"

#endif
