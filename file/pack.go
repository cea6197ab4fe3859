package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/rollway/rollway/internal/logfile"
)

// Packing: write NAME.gz.part, fsync it, rename it to NAME.gz, fsync the
// folder, remove NAME. A crash leaves one of these, which mend finishes:
//
//	NAME, NAME.gz.part       the copy is removed, NAME is packed again
//	NAME, NAME.gz            NAME is removed if the copy is whole, else the copy;
//	                         a power cut may have taken the end of NAME
//	NAME.gz.part             becomes NAME.gz if it is whole; else it is removed
//	NAME of no bytes         is removed: a rename did not come to pass

// pack replaces the file at path by a packed copy and returns its size.
func (k *keeper) pack(path string, c Compressor) (became int64, err error) {
	src, err := openFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errBusy // another process has packed it
	}
	if err != nil {
		return 0, fmt.Errorf("pack: %w", err)
	}
	defer src.Close()
	if !lockAlone(src) || !logfile.StillNames(path, src) {
		return 0, fmt.Errorf("pack %s: %w", path, errBusy)
	}
	name := path + c.Extension()
	dst, err := openFile(name+partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("pack: %w", err)
	}
	lockAlone(dst)
	defer func() {
		dst.Close()
		if err != nil {
			os.Remove(name + partial)
			err = fmt.Errorf("pack %s, which stays as it is: %w", path, err)
		}
	}()
	size, err := packInto(k.ctx, dst, src, c)
	if err != nil {
		return 0, err
	}
	info, err := src.Stat()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(keepOwner(dst, info), dst.Chmod(info.Mode().Perm())); err != nil && !k.toldOwner {
		k.toldOwner = true
		k.f.notice("%s could not be given the owner and permissions of what was packed, nor perhaps will later ones: %v", name, err)
	}
	if err := dst.Sync(); err != nil {
		return 0, err
	}
	packed, err := dst.Stat()
	if err != nil {
		return 0, err
	}
	if err := os.Chtimes(name+partial, info.ModTime(), info.ModTime()); err != nil {
		return 0, err
	}
	if err := logfile.RenameNew(name+partial, name); err != nil {
		return 0, err
	}
	s, _ := k.f.where()
	if err := syncFolder(s.folder); err != nil {
		return 0, errors.Join(err, os.Remove(name))
	}
	// A writer that knows of no locks may have come in between.
	if info, err := src.Stat(); err != nil || info.Size() != size {
		return 0, errors.Join(errors.New("it grew while it was packed"), err, os.Remove(name))
	}
	k.f.count(func(s *Stats) {
		s.Packed++
		s.PackedBytes += uint64(size)
		s.PackedTo += uint64(packed.Size())
	})
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.f.tell(k.f.fail("tidy", err)) // the next pass sees both
	}
	return packed.Size(), nil
}

// packInto copies src to its end and returns how many bytes that were.
func packInto(ctx context.Context, dst io.Writer, src io.Reader, c Compressor) (size int64, err error) {
	defer recovered(&err)
	w, err := c.NewWriter(dst)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(w, &reader{ctx, src})
	return size, errors.Join(err, w.Close())
}

// recovered turns a panic of a Compressor into an error.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("Options.Compress panicked: %v", v)
	}
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// mend finishes what a crash has left of x.
func (k *keeper) mend(x *kept) (did bool, err error) {
	if x.empty && x.packed == "" && len(x.partials) == 0 {
		if err := removeAlone(x.plain, true); err != nil {
			return false, err
		}
		x.plain = ""
		return true, nil
	}
	if len(x.partials) == 0 && (x.plain == "" || x.packed == "") {
		return false, nil
	}
	if x.plain != "" {
		src, err := openFile(x.plain, os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return false, errBusy // another process is at it: look again
		}
		if err != nil {
			return false, err
		}
		defer src.Close()
		if !lockAlone(src) || !logfile.StillNames(x.plain, src) {
			return false, fmt.Errorf("tidy %s: %w", x.plain, errBusy)
		}
		if x.packed != "" {
			if did, err = true, k.keepOne(x, src); err != nil {
				return did, err
			}
		}
	}
	for _, path := range x.partials {
		did = true
		if err := k.finish(x, path); err != nil {
			return did, err
		}
	}
	x.partials = nil
	return did, nil
}

// keepOne decides between src, which is x.plain, and its packed copy.
func (k *keeper) keepOne(x *kept, src io.Reader) error {
	copied, err := os.Open(x.packed)
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	if err != nil {
		return err
	}
	defer copied.Close()
	whole, err := covers(&reader{k.ctx, src}, &reader{k.ctx, copied}, x.ext, k.f.opt.Compress)
	switch {
	case unreadable(err):
		return fmt.Errorf("%s and its copy %s both stay: %w", x.plain, x.packed, err)
	case k.ctx.Err() != nil:
		return k.ctx.Err()
	case whole:
		if err := os.Remove(x.plain); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		k.f.count(func(s *Stats) { s.Recovered++ })
		x.plain = ""
		return nil
	}
	k.f.notice("%s is not a whole copy of %s, as after a crash: it is made anew", x.packed, x.plain)
	if err := os.Remove(x.packed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	k.f.count(func(s *Stats) { s.Recovered++ })
	x.packed, x.ext = "", ""
	return nil
}

// finish deals with a copy that was not finished. If x.plain exists, its lock
// is held.
func (k *keeper) finish(x *kept, path string) error {
	f, err := openFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !lockAlone(f) || !logfile.StillNames(path, f) {
		return fmt.Errorf("tidy %s: %w", path, errBusy)
	}
	if x.plain == "" && x.packed == "" {
		s, _ := k.f.where()
		name := path[:len(path)-len(partial)]
		m, _ := s.parse(name[len(s.folder)+1:])
		err := whole(&reader{k.ctx, f}, m.packed, k.f.opt.Compress)
		switch {
		case k.ctx.Err() != nil:
			return k.ctx.Err()
		case unreadable(err):
			return fmt.Errorf("%s stays: %w", path, err)
		case err == nil:
			if err := logfile.RenameNew(path, name); err != nil {
				return err
			}
			k.f.count(func(s *Stats) { s.Recovered++ })
			x.packed, x.ext = name, m.packed
			return nil
		}
		k.f.notice("%s is the begin of a packed file whose original is gone: it is removed", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	k.f.count(func(s *Stats) { s.Recovered++ })
	return nil
}

// unreadable reports whether err leaves open what a file holds: the disk failed,
// or it is packed in a way not known here.
func unreadable(err error) bool {
	_, failed := errors.AsType[*fs.PathError](err)
	return failed || errors.Is(err, errUnknownPacking)
}

// whole returns nil if r unpacks to its end.
func whole(r io.Reader, ext string, c Compressor) (err error) {
	defer recovered(&err)
	unpacked, err := unpack(r, ext, c)
	if err != nil {
		return err
	}
	defer unpacked.Close()
	_, err = io.Copy(io.Discard, unpacked)
	return err
}

// covers reports whether packed, unpacked to its end, has the bytes of plain. It
// has more of them where a power cut has taken some of plain, which need not
// have been fsynced as packed was; what has more than packed is not covered.
func covers(plain, packed io.Reader, ext string, c Compressor) (all bool, err error) {
	defer recovered(&err)
	unpacked, err := unpack(packed, ext, c)
	if err != nil {
		return false, err
	}
	defer unpacked.Close()
	want, got := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, err := unpacked.Read(got)
		m, short := io.ReadFull(plain, want[:n])
		switch {
		case !bytes.Equal(want[:m], got[:m]):
			return false, nil
		case short != nil && short != io.EOF && short != io.ErrUnexpectedEOF:
			return false, short
		case short != nil && err == nil:
			_, err = io.Copy(io.Discard, unpacked)
			return err == nil, err
		case short != nil && err == io.EOF:
			return true, nil
		case err == io.EOF:
			n, err := plain.Read(want[:1])
			return n == 0 && err == io.EOF, err
		case err != nil:
			return false, err
		}
	}
}
