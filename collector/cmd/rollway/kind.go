package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// foreign are the project's other formats.
var foreign = []struct{ magic, text string }{
	{"\x89RWJ\r\n\x1a\n", "a segment of a collector's journal: 'rollway verify' takes the journal's folder, and 'rollway query' shows the lines while the collector runs"},
	{"\x89RWP\r\n\x1a\n", "a file of slabs: 'rollway recover' lists and delivers the lines in it"},
	{"\x89RWS\r\n\x1a\n", "a segment of a spool: the process that owns the folder sends its lines when its peer is back"},
	{"\x89RWC\r\n\x1a\n", "the cursor of a spool: the process that owns the folder sends the lines that are beside it when its peer is back"},
}

// foreignError says what a file is that the command does not read.
type foreignError struct{ name, text string }

func (e *foreignError) Error() string { return e.name + " is " + e.text }

// checkKind returns a foreignError if r holds something of this project that
// another command reads.
func checkKind(name string, r io.ReaderAt) error {
	head := make([]byte, 8)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, k := range foreign {
		if n == len(head) && string(head) == k.magic {
			return &foreignError{name, k.text}
		}
	}
	return nil
}

// openLog opens a file that verify or cat reads. A folder, and a file of this
// project that another command reads, are errors.
func openLog(name string) (*input, error) {
	f, info, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	text := &input{name: name, file: f, whole: true, tailStart: -1}
	if info.Mode().IsRegular() {
		err = checkKind(name, f)
	}
	if err == nil {
		if err = text.begin(f); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		text.Close()
		return nil, err
	}
	return text, nil
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
