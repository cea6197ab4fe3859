//go:build !race && !msan && !asan && !purego

#include "textflag.h"

DATA newlines<>+0(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+8(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+16(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+24(SB)/8, $0x0a0a0a0a0a0a0a0a
GLOBL newlines<>(SB), RODATA|NOPTR, $32

// Each newline in 32 bytes is a bit of a mask. SI and DI are the next bytes to
// read and write, CX how many are left, DX the newlines so far.

#define COUNT64(A, B) \
	VPCMPEQB  Y0, A, A   \
	VPCMPEQB  Y0, B, B   \
	VPMOVMSKB A, R8      \
	VPMOVMSKB B, R9      \
	SHLQ      $32, R9    \
	ORQ       R9, R8     \
	POPCNTQ   R8, R8     \
	ADDQ      R8, DX

// func stream(dst, src *byte, n int) (newlines int)
TEXT ·stream(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	XORL DX, DX
	VMOVDQU newlines<>(SB), Y0
	SHRQ $6, CX
	JZ   done

loop:
	VMOVDQU  (SI), Y1
	VMOVDQU  32(SI), Y2
	VMOVNTDQ Y1, (DI)
	VMOVNTDQ Y2, 32(DI)
	COUNT64(Y1, Y2)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  loop

done:
	SFENCE // these stores are ordered by nothing else
	VZEROUPPER
	MOVQ DX, newlines+24(FP)
	RET

// func lines(dst, src *byte, n int) (newlines int)
TEXT ·lines(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	XORL DX, DX
	VMOVDQU newlines<>(SB), Y0
	SUBQ $64, CX
	JLT  short

loop:
	VMOVDQU (SI), Y1
	VMOVDQU 32(SI), Y2
	VMOVDQU Y1, (DI)
	VMOVDQU Y2, 32(DI)
	COUNT64(Y1, Y2)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JGE  loop

short:
	ADDQ $64-32, CX
	JLT  rest
	VMOVDQU   (SI), Y1
	VMOVDQU   Y1, (DI)
	VPCMPEQB  Y0, Y1, Y1
	VPMOVMSKB Y1, R8
	POPCNTQ   R8, R8
	ADDQ      R8, DX
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $32, CX

rest:
	// CX is 32 less than what is left: -32 for nothing, which shifts all of the
	// mask out, up to -1. The last 32 bytes overlap those before.
	VMOVDQU   (SI)(CX*1), Y1
	VMOVDQU   Y1, (DI)(CX*1)
	VPCMPEQB  Y0, Y1, Y1
	VPMOVMSKB Y1, R8
	NEGQ      CX
	SHRQ      CX, R8
	POPCNTQ   R8, R8
	ADDQ      R8, DX
	VZEROUPPER
	MOVQ DX, newlines+24(FP)
	RET
