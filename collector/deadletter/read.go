package deadletter

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/disk"
)

// A Filter selects dead letters. The zero value selects all.
type Filter struct {
	Reason, Receiver, ID string
	Tenant               *string   // nil: of any or none
	Since, Until         time.Time // of the last rejection, and of the first
	Text                 string    // in the event, its context or the detail
}

// Match reports whether f selects e.
func (f *Filter) Match(e *Entry) bool {
	last := e.Last
	if last.IsZero() {
		last = e.Time
	}
	switch {
	case f.Reason != "" && f.Reason != e.Reason, f.Receiver != "" && f.Receiver != e.Receiver, f.ID != "" && f.ID != e.ID,
		f.Tenant != nil && *f.Tenant != e.Tenant, !f.Since.IsZero() && last.Before(f.Since), !f.Until.IsZero() && !e.Time.Before(f.Until):
		return false
	case f.Text == "" || strings.Contains(e.Detail, f.Text):
		return true
	}
	text, _ := e.Text()            // what cannot be read has no text
	context, _ := e.ContextBytes() // likewise
	return bytes.Contains(text, []byte(f.Text)) || bytes.Contains(context, []byte(f.Text))
}

// A Place is where the line of a dead letter is.
type Place struct {
	File string // path
	Pos  int64
	Len  int
}

// maxLine is more than the longest line has that a Store writes.
const maxLine = 16 << 20

// EachLine calls f with each line of the file at path, up to limit bytes, and its place. Of
// a line of more than 16 MiB it has the beginning. The line is valid until f returns.
func EachLine(fsys disk.FS, path string, limit int64, f func(line []byte, at Place) error) (err error) {
	file, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	return eachLine(io.NewSectionReader(file, 0, min(size, limit)), path, maxLine, f)
}

// eachLine is EachLine for what in has. Of a line of more than most bytes, f gets so many:
// the beginning and the line end.
func eachLine(in io.Reader, path string, most int, f func(line []byte, at Place) error) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for at := (Place{File: path}); ; {
		piece, err := buffered.ReadSlice('\n')
		line = append(line, piece[:min(len(piece), most-len(line))]...)
		at.Len += len(piece)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && err != io.EOF:
			return fmt.Errorf("read %s: %w", path, err)
		case at.Len > most && err == nil:
			line[most-1] = '\n'
		}
		if at.Len > 0 {
			if err := f(line, at); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		at.Pos, at.Len, line = at.Pos+int64(at.Len), 0, line[:0]
	}
}

// Files returns the paths of the files of dead letters in the folder dir, the oldest first.
func Files(fsys disk.FS, dir string) (paths []string, err error) {
	entries, err := fsys.List(dir)
	for _, e := range entries {
		if _, _, ok := parseName(e.Name); ok {
			paths = append(paths, filepath.Join(dir, e.Name))
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(idOf(a), idOf(b)) })
	return paths, err
}

// Backup calls give with each file as it is now: whole lines. Events that wait to be written are
// not in them.
func (s *Store) Backup(give func(name string, content []byte) error) error {
	for _, seg := range s.segments(&Filter{}) {
		f, err := s.fs.OpenFile(s.path(&seg), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) { // evicted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		content := make([]byte, seg.size)
		_, err = f.ReadAt(content, 0)
		if err = errors.Join(err, f.Close()); err == nil {
			err = give(seg.name, content)
		}
		if err != nil {
			return fmt.Errorf("back up dead letters: %s: %w", seg.name, err)
		}
	}
	return nil
}

// segments returns the names and sizes of the files that may have dead letters which f selects, the oldest first.
func (s *Store) segments(f *Filter) (segs []segment) {
	s.mu.Lock()
	for _, g := range s.groups {
		if f.Tenant != nil && *f.Tenant != "" && g.principal != nameOf(*f.Tenant) || f.Reason != "" && g.name != g.principal+"."+f.Reason {
			continue
		}
		for _, seg := range g.segs {
			segs = append(segs, segment{name: seg.name, size: seg.size})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(segs, func(a, b segment) int { return cmp.Compare(idOf(a.name), idOf(b.name)) })
	return segs
}

// each calls visit with the dead letters that f selects, file by file.
func (s *Store) each(ctx context.Context, f *Filter, visit func(e *Entry, at Place) error) error {
	segs := s.segments(f)
	for i := range segs {
		err := EachLine(s.fs, s.path(&segs[i]), segs[i].size, func(line []byte, at Place) error {
			var e Entry
			if json.Unmarshal(line, &e) != nil || !f.Match(&e) { // a damaged line is left out
				return ctx.Err()
			}
			return visit(&e, at)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // evicted meanwhile
			return err
		}
	}
	return nil
}

// Find calls visit with the dead letters that f selects, file by file; unless last is 0,
// with the newest ones by the time of their first rejection, the oldest of them first.
func (s *Store) Find(ctx context.Context, f Filter, last int, visit func(e *Entry) error) error {
	if last == 0 {
		return s.each(ctx, &f, func(e *Entry, _ Place) error { return visit(e) })
	}
	type found struct {
		id string
		Place
	}
	var list []found
	cut := func() {
		slices.SortFunc(list, func(a, b found) int { return cmp.Compare(a.id, b.id) })
		list = slices.Delete(list, 0, max(0, len(list)-last))
	}
	err := s.each(ctx, &f, func(e *Entry, at Place) error {
		if list = append(list, found{e.ID, at}); len(list) >= 2*last+1000 {
			cut()
		}
		return nil
	})
	cut()
	for i := 0; i < len(list) && err == nil; i++ {
		var e Entry
		switch e, err = s.read(list[i].Place); {
		case err == nil:
			err = visit(&e)
		case errors.Is(err, fs.ErrNotExist): // evicted meanwhile
			err = ctx.Err()
		}
	}
	return err
}

func (s *Store) read(at Place) (e Entry, err error) {
	f, err := s.fs.OpenFile(at.File, os.O_RDONLY, 0)
	if err != nil {
		return e, err
	}
	line := make([]byte, at.Len)
	_, err = f.ReadAt(line, at.Pos)
	if err = errors.Join(err, f.Close()); err == nil {
		err = json.Unmarshal(line, &e)
	}
	return e, err
}

// Mark marks those dead letters of ids that f selects as replayed, and returns how many
// there are. Events that are like them become new dead letters.
func (s *Store) Mark(f Filter, ids []string) (n int, err error) {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var list []Place
	var found []string
	err = s.each(context.Background(), &f, func(e *Entry, at Place) error {
		if wanted[e.ID] {
			list, found = append(list, at), append(found, e.ID)
		}
		return nil
	})
	s.mu.Lock()
	s.forget = append(s.forget, found...)
	s.mu.Unlock()
	aside.Signal(s.work)
	for i := 0; i < len(list) && err == nil; i++ {
		switch err = Mark(s.fs, list[i]); {
		case err == nil:
			n++
		case errors.Is(err, fs.ErrNotExist): // evicted meanwhile
			err = nil
		}
	}
	return n, err
}

// Mark marks a dead letter in a file as replayed.
func Mark(fsys disk.FS, at Place) (err error) {
	f, err := fsys.OpenFile(at.File, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("mark a dead letter: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, headSize)
	if _, err := f.ReadAt(head, at.Pos); err != nil {
		return fmt.Errorf("mark a dead letter: %w", err)
	}
	if _, _, ok := parseHead(head); !ok {
		return fmt.Errorf("mark a dead letter: no dead letter of a collector begins at byte %d of %s", at.Pos, at.File)
	}
	_, err = f.WriteAt([]byte("true "), at.Pos+replayedAt)
	return err
}
