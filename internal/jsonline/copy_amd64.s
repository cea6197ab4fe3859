//go:build !race && !msan && !asan && !purego

#include "textflag.h"

DATA controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+8(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL controls<>(SB), RODATA|NOPTR, $16
DATA quotes<>+0(SB)/8, $0x2222222222222222
DATA quotes<>+8(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $16
DATA slashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA slashes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL slashes<>(SB), RODATA|NOPTR, $16

// BLOCK copies the 16 bytes at SI+off and looks at them. Compared with a sign,
// what is above 0x1f is below 0x80 as well: of that all bits stay set in X0.
// The bits of quotes and backslashes are gathered in X1.
#define BLOCK(off, a, b, c) \
	MOVOU   off(SI), a; \
	MOVOU   a, off(DI); \
	MOVO    a, b;       \
	MOVO    a, c;       \
	PCMPGTB X5, a;      \
	PCMPEQB X6, b;      \
	PCMPEQB X7, c;      \
	PAND    a, X0;      \
	POR     b, X1;      \
	POR     c, X1

// func copyLong(dst, s *byte, n int) bool
TEXT ·copyLong(SB), NOSPLIT, $0-25
	MOVQ    dst+0(FP), DI
	MOVQ    s+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVOU   controls<>(SB), X5
	MOVOU   quotes<>(SB), X6
	MOVOU   slashes<>(SB), X7
	PCMPEQB X0, X0
	PXOR    X1, X1
	SUBQ    $32, CX
	JLT     half

loop:
	BLOCK(0, X2, X3, X4)
	BLOCK(16, X8, X9, X10)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JGE  loop

half:
	// CX is 32 less than what is left.
	CMPQ CX, $-16
	JLT  rest
	BLOCK(0, X2, X3, X4)

rest:
	ADDQ  CX, SI
	ADDQ  CX, DI
	BLOCK(16, X8, X9, X10) // the last 16 bytes
	PANDN X0, X1 // clean is every bit in X0 and none in X1
	PMOVMSKB X1, AX
	CMPL  AX, $0xffff
	SETEQ ret+24(FP)
	RET
