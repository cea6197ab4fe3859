package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/internal/recordlog"
)

// A subject is what an argument of verify or cat names.
type subject struct {
	name    string         // as given
	journal string         // folder of a journal, or ""
	spool   []string       // files in the folder of a spool, or nil
	kind    recordlog.Kind // of a file; 0: text, or a pipe
}

// identify finds out what name is. A folder that is neither a collector's data, nor
// a journal or a spool is an error.
func identify(name string) (*subject, error) {
	s := &subject{name: name}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, renamed(err)
	case info.Mode().IsRegular():
		s.kind, err = recordlog.Identify(name)
		return s, err
	case !info.IsDir():
		return s, nil
	}
	for _, dir := range []string{name, collector.JournalFolder(name)} {
		if has(dir, "MANIFEST") || has(dir, digits+".seg") || has(dir, digits+".open") {
			s.journal = dir
			return s, nil
		}
	}
	s.spool, _ = filepath.Glob(filepath.Join(name, digits+".spool"))
	if has(name, "CURSOR") {
		s.spool = append(s.spool, filepath.Join(name, "CURSOR"))
	}
	if len(s.spool) == 0 {
		return nil, fmt.Errorf("%s is a folder, and no journal or spool; name the files in it", name)
	}
	return s, nil
}

// digits matches the number in a segment's name.
var digits = strings.Repeat("[0-9]", 20)

func has(dir, pattern string) bool {
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	return len(names) > 0
}

// renamed is err, of os.Stat, as os.Open says it.
func renamed(err error) error {
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		return &os.PathError{Op: "open", Path: p.Path, Err: p.Err}
	}
	return err
}

// openLog opens text that verify or cat reads.
func openLog(name string) (*input, error) {
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	text := &input{name: name, file: f, whole: true, tailStart: -1}
	if err := text.begin(f); err != nil {
		text.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
