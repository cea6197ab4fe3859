// Package backup is the format of a backup: a tar archive of a collector's data folder.
//
//  1. First come the files, below journal/ and rejected/, then BACKUP.json, which lists them, and
//     at the end its SHA-256. An archive without that was cut off.
//  2. [Read] compares all of it, and each line with its checksum. [Restore] does so too, before
//     the first file has its name.
//
// The archive is described in docs/FORMAT.md.
package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

const (
	manifestName = "BACKUP.json"
	sumName      = manifestName + ".sha256"
	version      = 1

	// maxManifest bounds what is read of a manifest: 1 PiB of segments have less.
	maxManifest = 1 << 30
)

// Journal and Rejected begin the names of the files of the journal and of dead letters.
const (
	Journal  = "journal/"
	Rejected = "rejected/"
)

// A Manifest says what a backup has.
type Manifest struct {
	Version   int       `json:"version"`
	Collector string    `json:"collector"`    // its version
	Journal   string    `json:"journal"`      // its ID
	Began     time.Time `json:"began"`        // what was stored by then is in it
	Ended     time.Time `json:"ended"`        // nothing is in it that came later
	First     uint64    `json:"first_offset"` // of the oldest line
	Next      uint64    `json:"next_offset"`  // after the newest line
	Files     []File    `json:"files"`        // in the order of the archive
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	First  uint64 `json:"first_offset,omitempty"` // of a segment, as the next two
	End    uint64 `json:"end_offset,omitempty"`
	Lines  uint64 `json:"lines,omitempty"` // as counted when they were written
}

// Lines is how many lines there are in all segments, and Bytes how many bytes in all files.
func (m *Manifest) Lines() (n uint64) {
	for _, f := range m.Files {
		n += f.Lines
	}
	return n
}

// Bytes is how many bytes all files have.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// A Writer writes a backup. One goroutine uses it.
type Writer struct {
	Manifest // without Files it is the caller's
	tar      *tar.Writer
	buf      []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{Manifest: Manifest{Version: version, Began: time.Now().UTC()}, tar: tar.NewWriter(w), buf: make([]byte, 256<<10)}
}

// Add adds a file; its SHA256 is taken of content.
func (w *Writer) Add(f File, content io.ReaderAt) error {
	if err := w.header(f.Name, f.Bytes); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(sum, w.tar), io.NewSectionReader(content, 0, f.Bytes), w.buf)
	if err == nil && n < f.Bytes {
		err = fmt.Errorf("%s was cut to %d of %d bytes while it was read", f.Name, n, f.Bytes)
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	w.Files = append(w.Files, f)
	return err
}

func (w *Writer) header(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o640, ModTime: w.Began})
}

// Close ends the archive.
func (w *Writer) Close() error {
	w.Ended = time.Now().UTC()
	text, err := json.MarshalIndent(&w.Manifest, "", " ")
	if err != nil {
		return err
	}
	for name, b := range manifestFiles(text) {
		if err := w.header(name, int64(len(b))); err != nil {
			return err
		}
		if _, err := w.tar.Write(b); err != nil {
			return err
		}
	}
	return w.tar.Close()
}

// manifestFiles yields the two files at the end of an archive.
func manifestFiles(manifest []byte) func(yield func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		sum := sha256.Sum256(manifest)
		_ = yield(manifestName, manifest) && yield(sumName, fmt.Appendf(nil, "%x  %s\n", sum, manifestName))
	}
}
