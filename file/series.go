package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// A rotated file is named after the path, the moment of its rotation and its
// inode number, and a compressed one after the file that it was:
//
//	payment-api.log                                            the path
//	payment-api-20261121T080309.123456789Z-5f3a2c.log          rotated
//	payment-api-20261121T080309.123456789Z-5f3a2c.log.gz       compressed
//	payment-api-20261121T080309.123456789Z-5f3a2c.log.gz.part  being compressed
//
// No two files that exist at once have the same number, so names of one moment
// differ, and a compressed file tells which file it was.

const partial = ".part"

type series struct {
	path       string // of the current file
	folder     string // of the rotated ones
	stem, ext  string // of the path: stem-…ext
	loc        *time.Location
	extensions []string // of compressed files
}

// newSeries returns the names for the file at path, which is no symbolic link.
func newSeries(path string, o Options) series {
	folder := cmp.Or(o.Folder, filepath.Dir(path))
	s := series{path: path, folder: folder, loc: o.Location, extensions: []string{".gz", ".zst"}}
	base := filepath.Base(path)
	s.ext = filepath.Ext(base)
	if s.ext == base || checkExtension(s.ext) != nil {
		s.ext = "" // .hidden, name., a.b-c
	}
	s.stem = strings.TrimSuffix(base, s.ext)
	if o.Compress != nil {
		s.extensions = append(s.extensions, o.Compress.Extension())
	}
	return s
}

type member struct {
	time       time.Time
	inode      uint64
	compressed string // extension, "" if it is plain
	partial    bool
}

func (s series) name(m member) string {
	name := fmt.Sprintf("%s-%s-%x%s%s", s.stem, m.time.Format(logfile.Stamp), m.inode, s.ext, m.compressed)
	if m.partial {
		name += partial
	}
	return name
}

// parse reads a name. For one that name never returns it reports false and what could be
// read.
func (s series) parse(name string) (m member, ok bool) {
	rest, ok := strings.CutPrefix(name, s.stem+"-")
	dash := strings.LastIndexByte(rest, '-') // a zone may have another before it
	if !ok || dash < 0 {
		return m, false
	}
	stamp, rest := rest[:dash], rest[dash+1:]
	number, _, _ := strings.Cut(rest, ".")
	var timeErr, inodeErr error
	m.time, timeErr = time.Parse(logfile.Stamp, stamp)
	m.inode, inodeErr = strconv.ParseUint(number, 16, 64)
	rest, ok = strings.CutPrefix(rest[len(number):], s.ext)
	if timeErr != nil || inodeErr != nil || !ok {
		return m, false
	}
	m.compressed, m.partial = strings.CutSuffix(rest, partial)
	known := rest == "" || slices.Contains(s.extensions, m.compressed)
	// Whatever else differs, as upper case or a zone of +0000, is not ours.
	return m, known && s.name(m) == name
}

type rotatedFile struct {
	time       time.Time // of its rotation
	plain      string    // paths, "" if it does not exist
	compressed string
	partials   []string
	size       int64 // bytes of plain and compressed
}

func (x *rotatedFile) gone() bool { return x.plain == "" && x.compressed == "" }

// list returns the series from old to new. Files with a time in the future count as the
// oldest: they are from before the clock was set back.
func (s series) list() ([]*rotatedFile, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	all := map[string]*rotatedFile{} // by the name of the plain file
	for _, e := range entries {
		m, ok := s.parse(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		plain := s.name(member{time: m.time, inode: m.inode})
		x := all[plain]
		if x == nil {
			x = &rotatedFile{time: m.time}
			all[plain] = x
		}
		path := filepath.Join(s.folder, e.Name())
		switch {
		case m.partial:
			x.partials = append(x.partials, path)
			continue
		case m.compressed != "":
			x.compressed = path
		default:
			x.plain = path
		}
		x.size += info.Size()
	}
	now := time.Now()
	era := func(x *rotatedFile) int {
		if x.time.Sub(now) > clockBack {
			return -1
		}
		return 0
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *rotatedFile) int {
		return cmp.Or(era(a)-era(b), a.time.Compare(b.time), strings.Compare(a.plain+a.compressed, b.plain+b.compressed))
	}), nil
}
