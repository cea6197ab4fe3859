package file

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// A rotated file is named after the path, the moment of its rotation and its
// inode number, and a packed one after the file that it was:
//
//	payment-api.log                                            the path
//	payment-api-20261121T080309.123456789Z-5f3a2c.log          rotated
//	payment-api-20261121T080309.123456789Z-5f3a2c.log.gz       packed
//	payment-api-20261121T080309.123456789Z-5f3a2c.log.gz.part  being packed
//
// The number makes names of one moment differ, as no two files that exist at
// once share it, and says which file a packed one was.

// partial ends the name of a file that is being packed.
const partial = ".part"

// A series is the names of the files rotated from one path.
type series struct {
	folder    string
	stem, ext string // of the path: stem-…ext
	loc       *time.Location
	packed    []string // extensions of packed files
}

// newSeries returns the names for the file at path, which is not a symbolic
// link.
func newSeries(path string, o Options) series {
	s := series{folder: o.Folder, loc: o.Location, packed: []string{".gz", ".zst"}}
	if s.folder == "" {
		s.folder = filepath.Dir(path)
	}
	base := filepath.Base(path)
	s.ext = filepath.Ext(base)
	if s.ext == base || checkExtension(s.ext) != nil {
		s.ext = "" // .hidden, name., a.b-c
	}
	s.stem = strings.TrimSuffix(base, s.ext)
	if o.Compress != nil {
		s.packed = append(s.packed, o.Compress.Extension())
	}
	return s
}

// member is what a name says.
type member struct {
	time    time.Time
	inode   uint64
	packed  string // extension, "" if it is plain
	partial bool
}

// name returns the name of m, without the folder.
func (s series) name(m member) string {
	b := append([]byte(s.stem), '-')
	b = m.time.AppendFormat(b, logfile.Stamp)
	b = append(b, '-')
	b = strconv.AppendUint(b, m.inode, 16)
	b = append(b, s.ext...)
	b = append(b, m.packed...)
	if m.partial {
		b = append(b, partial...)
	}
	return string(b)
}

// parse reads a name. It reports false for every one that name does not make.
func (s series) parse(name string) (m member, ok bool) {
	const seconds, zone = len("20060102T150405.000000000"), len("+0700")
	rest, ok := strings.CutPrefix(name, s.stem+"-")
	if !ok || len(rest) <= seconds {
		return member{}, false
	}
	end := seconds + 1
	if rest[seconds] != 'Z' {
		end = seconds + zone
	}
	if len(rest) <= end+1 || rest[end] != '-' {
		return member{}, false
	}
	t, err := time.Parse(logfile.Stamp, rest[:end])
	if err != nil {
		return member{}, false
	}
	m.time = t
	number := rest[end+1:]
	if i := strings.IndexByte(number, '.'); i >= 0 {
		number, rest = number[:i], number[i:]
	} else {
		rest = ""
	}
	if m.inode, err = strconv.ParseUint(number, 16, 64); err != nil {
		return member{}, false
	}
	if rest, ok = strings.CutPrefix(rest, s.ext); !ok {
		return member{}, false
	}
	if tail, ok := strings.CutSuffix(rest, partial); ok && tail != "" {
		m.partial, rest = true, tail
	}
	m.packed = rest
	known := rest == ""
	for _, ext := range s.packed {
		known = known || rest == ext
	}
	// Whatever else differs, as upper case or a zone of +0000, is not ours.
	return m, known && s.name(m) == name
}
