//go:build !race && !msan && !asan && !purego

#include "textflag.h"
#include "go_asm.h"

DATA newlines<>+0(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+8(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+16(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA newlines<>+24(SB)/8, $0x0a0a0a0a0a0a0a0a
GLOBL newlines<>(SB), RODATA|NOPTR, $32

// func putLong(o *opened, p *byte, n int)
//
// AX is o, SI and DI the next bytes to read and write, CX how many are left,
// DX the newlines so far. Each newline in 32 bytes is a bit of a mask.
TEXT ·putLong(SB), NOSPLIT, $0-24
	MOVQ o+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ opened_pos(AX), BX
	MOVQ opened_buf(AX), DI
	ADDQ BX, DI
	ADDQ CX, BX // where the lines will end
	XORL DX, DX
	VMOVDQU newlines<>(SB), Y0
	SUBQ $128, CX
	JLT  short

long:
	VMOVDQU   (SI), Y1
	VMOVDQU   32(SI), Y2
	VMOVDQU   64(SI), Y3
	VMOVDQU   96(SI), Y4
	VMOVDQU   Y1, (DI)
	VMOVDQU   Y2, 32(DI)
	VMOVDQU   Y3, 64(DI)
	VMOVDQU   Y4, 96(DI)
	VPCMPEQB  Y0, Y1, Y1
	VPCMPEQB  Y0, Y2, Y2
	VPCMPEQB  Y0, Y3, Y3
	VPCMPEQB  Y0, Y4, Y4
	VPMOVMSKB Y1, R8
	VPMOVMSKB Y2, R9
	VPMOVMSKB Y3, R10
	VPMOVMSKB Y4, R11
	SHLQ      $32, R9
	ORQ       R9, R8
	SHLQ      $32, R11
	ORQ       R11, R10
	POPCNTQ   R8, R8
	POPCNTQ   R10, R10
	ADDQ      R8, DX
	ADDQ      R10, DX
	ADDQ      $128, SI
	ADDQ      $128, DI
	SUBQ      $128, CX
	JGE       long

short:
	ADDQ $128-32, CX
	JLT  rest

next:
	VMOVDQU   (SI), Y1
	VMOVDQU   Y1, (DI)
	VPCMPEQB  Y0, Y1, Y1
	VPMOVMSKB Y1, R8
	POPCNTQ   R8, R8
	ADDQ      R8, DX
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JGE       next

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

	// In this order, as plain stores, which amd64 keeps: the lines, how many
	// bytes and lines they are, and the lock.
	ADDQ opened_lines(AX), DX
	MOVQ opened_committed(AX), DI
	MOVQ DX, R8
	SHLQ $32, R8
	ORQ  BX, R8
	MOVQ R8, (DI)
	MOVQ BX, opened_pos(AX)
	MOVQ DX, opened_lines(AX)
	MOVL $0, opened_mu+lock_state(AX)
	RET
