//go:build !race && !msan && !asan && !purego

#include "textflag.h"

// MASKS sets bits of R8 for backslashes in the 16 bytes at OFFSET, of R9 for quotes, and of
// R10 for control characters. X0, X1 and X2 have backslashes, quotes, and the last control
// characters.
#define MASKS(OFFSET) \
	MOVOU    OFFSET(SI), X3 \
	MOVO     X3, X4 \
	MOVO     X3, X5 \
	PMINUB   X2, X5 \
	PCMPEQB  X3, X5 \
	PCMPEQB  X1, X4 \
	PCMPEQB  X0, X3 \
	PMOVMSKB X3, R8 \
	PMOVMSKB X4, R9 \
	PMOVMSKB X5, R10

// LATER adds them to AX, BX and CX.
#define LATER(OFFSET) \
	MASKS(OFFSET) \
	SHLQ $OFFSET, R8 \
	SHLQ $OFFSET, R9 \
	SHLQ $OFFSET, R10 \
	ORQ  R8, AX \
	ORQ  R9, BX \
	ORQ  R10, CX

// func masks(b *[64]byte) (slashes, quotes, ctrls uint64)
TEXT ·masks(SB), NOSPLIT, $0-32
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
	MOVQ R10, CX
	LATER(16)
	LATER(32)
	LATER(48)
	MOVQ AX, slashes+8(FP)
	MOVQ BX, quotes+16(FP)
	MOVQ CX, ctrls+24(FP)
	RET

// DROP copies the word at OFFSET to DI without the bytes of the lowest byte of AX, and moves
// both on.
#define DROP(OFFSET) \
	MOVBLZX AX, BX \
	MOVQ    OFFSET(SI), X0 \
	MOVQ    (R8)(BX*8), X1 \
	PSHUFB  X1, X0 \
	MOVQ    X0, OFFSET(DI) \
	POPCNTL BX, BX \
	SUBQ    BX, DI \
	SHRQ    $8, AX

// func dropWords(out, b *[96]byte, m uint64, kept *[256][8]byte)
TEXT ·dropWords(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ m+16(FP), AX
	MOVQ kept+24(FP), R8
	DROP(0)
	DROP(8)
	DROP(16)
	DROP(24)
	DROP(32)
	DROP(40)
	DROP(48)
	DROP(56)
	RET
