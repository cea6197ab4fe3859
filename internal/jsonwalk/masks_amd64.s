//go:build !race && !msan && !asan && !purego

#include "textflag.h"

// MASKS sets bits of R8 for backslashes in the 16 bytes at OFFSET, and of R9 for quotes and
// control characters. X0, X1 and X2 have backslashes, quotes, and the last control characters.
#define MASKS(OFFSET) \
	MOVOU    OFFSET(SI), X3 \
	MOVO     X3, X4 \
	MOVO     X3, X5 \
	PMINUB   X2, X5 \
	PCMPEQB  X3, X5 \
	PCMPEQB  X1, X4 \
	PCMPEQB  X0, X3 \
	POR      X5, X4 \
	PMOVMSKB X3, R8 \
	PMOVMSKB X4, R9

// func masks(b *[64]byte) (slashes, stops uint64)
TEXT ·masks(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVQ $0x5c5c5c5c5c5c5c5c, AX
	MOVQ AX, X0
	MOVQ $0x2222222222222222, AX
	MOVQ AX, X1
	MOVQ $0x1f1f1f1f1f1f1f1f, AX
	MOVQ AX, X2
	PUNPCKLQDQ X0, X0
	PUNPCKLQDQ X1, X1
	PUNPCKLQDQ X2, X2
	MASKS(0)
	MOVQ R8, AX
	MOVQ R9, BX
	MASKS(16)
	SHLQ $16, R8
	SHLQ $16, R9
	ORQ  R8, AX
	ORQ  R9, BX
	MASKS(32)
	SHLQ $32, R8
	SHLQ $32, R9
	ORQ  R8, AX
	ORQ  R9, BX
	MASKS(48)
	SHLQ $48, R8
	SHLQ $48, R9
	ORQ  R8, AX
	ORQ  R9, BX
	MOVQ AX, slashes+8(FP)
	MOVQ BX, stops+16(FP)
	RET
