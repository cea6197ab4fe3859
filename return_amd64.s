#include "textflag.h"

// func returnAddress() uintptr
//
// BP is the frame pointer of the caller, which has a frame: its own caller's
// frame pointer stands there, and above it the address it returns to.
TEXT ·returnAddress(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ 8(BP), AX
	MOVQ AX, ret+0(FP)
	RET
