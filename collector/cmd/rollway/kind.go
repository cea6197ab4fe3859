package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/internal/framed"
)

// fileKind is what a file holds, by its first bytes.
type fileKind int

const (
	kindText fileKind = iota // packed or not, and whatever else there is
	kindFramed
	kindForeign // of this project, and for another command
)

// foreign are the project's other formats. Two begin alike and differ in the
// four bytes behind the format version.
var foreign = []struct {
	magic string
	at12  byte // one of the four bytes there, in any byte order; 0: all are zero
	text  string
}{
	{"\x89RWJ\r\n\x1a\n", 0, "a segment of a collector's journal: 'rollway verify' takes the journal's folder, and 'rollway query' shows the lines while the collector runs"},
	{"\x89RWS\r\n\x1a\n", 4, "a file of slabs: 'rollway recover' lists and delivers the lines in it"},
	{"\x89RWS\r\n\x1a\n", 0, "a segment of a spool: the process that owns the folder sends its lines when its peer is back"},
	{"\x89RWC\r\n\x1a\n", 0, "the cursor of a spool: the process that owns the folder sends the lines that are beside it when its peer is back"},
}

// foreignError says what a file is that the command does not read.
type foreignError struct{ name, text string }

func (e *foreignError) Error() string { return e.name + " is " + e.text }

// kindOf tells what f, whose size is given, holds. Streams are text.
func kindOf(name string, f io.ReaderAt, size int64) (fileKind, error) {
	if framed.Detect(f, size) {
		return kindFramed, nil
	}
	head := make([]byte, 16)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return kindText, err
	}
	for _, k := range foreign {
		if n < len(head) || !bytes.HasPrefix(head, []byte(k.magic)) {
			continue
		}
		if k.magic[3] != 'S' || bytes.IndexByte(head[12:], k.at12) >= 0 {
			return kindForeign, &foreignError{name, k.text}
		}
	}
	return kindText, nil
}

// logFile is an open file that verify or cat reads.
type logFile struct {
	name string
	kind fileKind
	file *os.File
	size int64  // of the file, bytes
	text *input // of kindText
}

// openLog opens a file and looks at what it is. A folder, and a file of this
// project that another command reads, are errors.
func openLog(name string) (*logFile, error) {
	f, info, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	l := &logFile{name: name, file: f, size: info.Size()}
	if info.Mode().IsRegular() {
		l.kind, err = kindOf(name, f, l.size)
	}
	if err == nil && l.kind == kindText {
		l.text = &input{name: name, file: f, tailStart: -1}
		if err = l.text.begin(f); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		} else if head, _ := l.text.text.Peek(8); l.text.unpacker != nil && framed.IsSegment(head) {
			err = fmt.Errorf("%s is a packed framed segment: unpack it first", name)
		}
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *logFile) close() {
	if l.text != nil {
		l.text.Close()
		return
	}
	l.file.Close()
}

// isJournal reports whether dir is the folder of a collector's journal.
func isJournal(dir string) bool {
	for _, ext := range []string{".seg", ".open"} {
		if names, _ := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9]", 20)+ext)); len(names) > 0 {
			return true
		}
	}
	return false
}
