package direct

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// system is what a Tail asks of Linux.
type system struct {
	block   int
	flags   int  // of pwritev2
	refuses bool // to write uncached
	vectors vectors
}

func (s *system) open(f *os.File, m Mode) error {
	switch m {
	case Direct:
		return s.openDirect(f)
	case Uncached:
		s.flags = unix.RWF_DONTCACHE
	}
	return nil
}

// Supported returns an error if no file of this system can be written that way.
func Supported(Mode) error { return nil }

// openDirect asks what the file demands before it switches it: memory and
// offsets that are multiples of a block. Where the system does not tell, 4096
// is enough.
func (s *system) openDirect(f *os.File) error {
	s.block = Align
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st); err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
		s.block = int(max(st.Dio_mem_align, st.Dio_offset_align))
		if s.block == 0 {
			return fmt.Errorf("direct I/O: the file system does not support it: %w", errors.ErrUnsupported)
		}
		if s.block > Align || Align%s.block != 0 {
			return fmt.Errorf("direct I/O in blocks of %d bytes: %w", s.block, errors.ErrUnsupported)
		}
	}
	return refused("direct I/O", s.bypass(f, true))
}

// bypass has writes to f bypass the page cache, or not.
func (s *system) bypass(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags &^= unix.O_DIRECT; on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}

// restore takes back what openDirect did.
func (s *system) restore(f *os.File) error {
	if s.block == 0 {
		return nil
	}
	return s.bypass(f, false)
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
	n, err := s.vectors.pwritev2(int(f.Fd()), bufs, offset, s.flags)
	if s.flags != 0 && (err == unix.EOPNOTSUPP || err == unix.EINVAL) { // an older kernel, or file system
		s.flags, s.refuses = 0, true
		n, err = s.vectors.pwritev2(int(f.Fd()), bufs, offset, 0)
	}
	if err == unix.EINVAL && s.block > 1 && beyondLimit(bufs, offset) {
		err = unix.EFBIG // the system cut the write at the limit, and then found it unaligned
	}
	if err != nil {
		return max(n, 0), os.NewSyscallError("pwritev2", err)
	}
	return n, nil
}

// beyondLimit reports whether a write at offset passes RLIMIT_FSIZE.
func beyondLimit(bufs [][]byte, offset int64) bool {
	for _, b := range bufs {
		offset += int64(len(b))
	}
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(offset) > limit.Cur
}

func (s *system) allocate(f *os.File, offset, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, size)
	return refused("fallocate", err)
}
