package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/internal/recordlog"
)

// A Report is what Read has found.
type Report struct {
	Manifest
	Found    uint64   `json:"lines"`    // that are sound
	Findings []string `json:"findings"` // what was damaged or missing in the collector already
}

// Is reports whether f begins as a backup does.
func Is(f io.ReaderAt) bool {
	h, err := tar.NewReader(io.NewSectionReader(f, 0, 1<<20)).Next()
	return err == nil && belongs(h)
}

// belongs reports whether a backup has such a file.
func belongs(h *tar.Header) bool {
	folder := strings.HasPrefix(h.Name, Journal) || strings.HasPrefix(h.Name, Rejected)
	return h.Typeflag == tar.TypeReg && (folder || h.Name == manifestName || h.Name == sumName) && filepath.IsLocal(h.Name) && path.Clean(h.Name) == h.Name
}

// entry is a file of an archive that was read.
type entry struct {
	File
	at    int64            // where it begins in the archive
	found recordlog.Report // of a file of the journal
}

// Read reads the backup f of size bytes to its end. The error says what is damaged, and where. With
// a folder to, which does not exist, the files are written there.
func Read(f io.ReaderAt, size int64, to string) (*Report, error) {
	in := io.NewSectionReader(f, 0, size)
	archive, manifest, sealed := tar.NewReader(in), []byte(nil), false
	var list []entry
	for {
		h, err := archive.Next()
		at, _ := in.Seek(0, io.SeekCurrent) // which cannot fail
		switch {
		case err == io.EOF && sealed:
			return compare(list, manifest)
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("the backup is cut off at byte %d: the files at its end are missing", at)
		case err != nil:
			return nil, fmt.Errorf("the backup is damaged before byte %d: %w", at, err)
		case !belongs(h) || sealed:
			return nil, fmt.Errorf("no backup has the file %.100q, which is at byte %d", h.Name, at)
		}
		e := entry{File: File{Name: h.Name, Bytes: h.Size}, at: at}
		if h.Name == manifestName || h.Name == sumName {
			text, err := io.ReadAll(io.LimitReader(archive, maxManifest))
			if err != nil {
				return nil, fmt.Errorf("the backup is cut off within %s, which begins at byte %d: %w", h.Name, at, err)
			}
			if h.Name == manifestName {
				manifest = text
				continue
			}
			for name, want := range manifestFiles(manifest) {
				sealed = name == sumName && bytes.Equal(text, want)
			}
			if !sealed {
				return nil, fmt.Errorf("the backup is damaged: %s or %s, before byte %d", manifestName, sumName, at+h.Size)
			}
			continue
		}
		if err := e.read(archive, f, to); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}

// read reads the content of e from the archive, and looks at that of a file of the journal in f.
func (e *entry) read(archive io.Reader, f io.ReaderAt, to string) (err error) {
	sum := sha256.New()
	dst := io.Writer(sum)
	if to != "" {
		file, err := create(filepath.Join(to, filepath.FromSlash(e.Name)))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		dst = io.MultiWriter(sum, file)
		defer func() {
			if err == nil {
				err = file.Sync()
			}
		}()
	}
	switch n, err := io.Copy(dst, archive); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the backup is cut off at byte %d: %s has %d bytes of %d", e.at+n, e.Name, n, e.Bytes)
	case err != nil:
		return err
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if name := strings.TrimPrefix(e.Name, Journal); name != e.Name && name != "ID" {
		found, err := recordlog.InspectOpen(io.NewSectionReader(f, e.at, e.Bytes), e.Bytes, name)
		if e.found = found; err != nil {
			e.found.Findings = []recordlog.Finding{{Kind: recordlog.Damaged, File: name, Detail: err.Error()}}
		}
	}
	return nil
}

func create(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
}

// compare compares the files of an archive with its manifest.
func compare(list []entry, manifest []byte) (*Report, error) {
	r := new(Report)
	if err := json.Unmarshal(manifest, &r.Manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", manifestName, err)
	}
	if r.Version != version {
		return nil, fmt.Errorf("the backup has version %d, and this program reads %d: use the program of the collector that wrote it, %s", r.Version, version, r.Collector)
	}
	if len(list) != len(r.Files) {
		return nil, fmt.Errorf("the backup has %d files, and %s lists %d", len(list), manifestName, len(r.Files))
	}
	next := r.Next // where the segment before has to end
	for i := range list {
		e, want := &list[i], r.Files[i]
		if e.Name != want.Name || e.Bytes != want.Bytes || e.SHA256 != want.SHA256 {
			return nil, e.damage(&want)
		}
		for _, f := range e.found.Findings {
			r.Findings = append(r.Findings, f.String())
		}
		if e.found.Kind != recordlog.JournalSegment {
			continue
		}
		r.Found += uint64(e.found.Records)
		if n := uint64(e.found.Records); n != want.Lines {
			r.Findings = append(r.Findings, fmt.Sprintf("%s: %d lines are sound of %d", e.Name, n, want.Lines))
		}
		if want.End < next {
			r.Findings = append(r.Findings, fmt.Sprintf("offsets %d to %d are missing before %s", want.End, next-1, e.Name))
		}
		next = want.First
	}
	return r, nil
}

// damage says where e is not what the manifest lists.
func (e *entry) damage(want *File) error {
	if len(e.found.Findings) > 0 {
		f := e.found.Findings[0]
		return fmt.Errorf("the backup is damaged at byte %d: %s", e.at+f.Pos, f)
	}
	return fmt.Errorf("the backup is damaged between the bytes %d and %d: %s has another checksum than %s lists for %s", e.at, e.at+e.Bytes, e.Name, manifestName, want.Name)
}
