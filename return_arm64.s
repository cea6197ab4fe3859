#include "textflag.h"

// func returnAddress() uintptr
//
// R29 is the frame pointer of the caller, which has a frame: its own caller's
// frame pointer stands there, and above it the address it returns to.
TEXT ·returnAddress(SB), NOSPLIT|NOFRAME, $0-8
	MOVD 8(R29), R0
	MOVD R0, ret+0(FP)
	RET
