package direct

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

type system struct {
	mode    Mode // becomes Buffered if Uncached is not supported
	vectors vectors
}

func Supported(Mode) error { return nil }

// open switches f to the mode. Offsets, lengths and memory of writes have to be multiples
// of block; 4096 is enough where the system does not report it.
func (s *system) open(f *os.File, m Mode) (block int, err error) {
	s.mode = m
	if m != Direct {
		return 1, nil
	}
	block = Align
	if memory, offset, told := Alignment(f); told {
		if block = max(memory, offset); block == 0 {
			return 0, fmt.Errorf("direct I/O: the file system does not support it: %w", errors.ErrUnsupported)
		}
		if block > Align || Align%block != 0 {
			return 0, fmt.Errorf("direct I/O in blocks of %d bytes: %w", block, errors.ErrUnsupported)
		}
	}
	return block, refused("direct I/O", Bypass(f, true))
}

// Alignment returns the alignment in bytes that direct I/O on f requires of memory, and of
// offsets and lengths; 0 if it is not supported. Linux reports it from 6.1 on.
func Alignment(f *os.File) (memory, offset int, told bool) {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return 0, 0, false
	}
	return int(st.Dio_mem_align), int(st.Dio_offset_align), true
}

// Bypass sets whether writes to f bypass the page cache.
func Bypass(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		if flags &^= unix.O_DIRECT; on {
			flags |= unix.O_DIRECT
		}
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	}
	return os.NewSyscallError("fcntl", err)
}

func refused(what string, err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%s: %w (%w)", what, errors.ErrUnsupported, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *system) write(f *os.File, bufs [][]byte, offset int64) (int, error) {
	if offset == atEnd && s.mode != Uncached {
		n, err := s.vectors.writev(int(f.Fd()), bufs)
		return max(n, 0), os.NewSyscallError("writev", err)
	}
	flags := 0
	if s.mode == Uncached {
		flags = unix.RWF_DONTCACHE
	}
	n, err := s.vectors.pwritev2(int(f.Fd()), bufs, offset, flags)
	if flags != 0 && (err == unix.EOPNOTSUPP || err == unix.EINVAL) { // an older kernel, or file system
		s.mode = Buffered
		n, err = s.vectors.pwritev2(int(f.Fd()), bufs, offset, 0)
	}
	if err == unix.EINVAL && s.mode == Direct && beyondLimit(bufs, offset) {
		err = unix.EFBIG // the system cut the write at the limit, and then found it unaligned
	}
	return max(n, 0), os.NewSyscallError("pwritev2", err)
}

func beyondLimit(bufs [][]byte, offset int64) bool {
	for _, b := range bufs {
		offset += int64(len(b))
	}
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(offset) > limit.Cur
}

// Allocate allocates blocks for f, also after its end, and keeps its size.
func Allocate(f *os.File, offset, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, size)
	return refused("fallocate", err)
}
