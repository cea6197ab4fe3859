package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/backup"
	"github.com/rollway/rollway/internal/recordlog"
)

// A subject is what an argument of verify, cat or recover names.
type subject struct {
	journal string         // folder of a journal, or ""
	spool   []string       // files in the folder of a spool, or nil
	kind    recordlog.Kind // of a file; 0: text, or a pipe
	backup  bool           // it is a backup
}

// identify finds out what name is. A folder that is neither a collector's data, nor
// a journal or a spool is an error.
func identify(name string) (s subject, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return s, err
	case info.Mode().IsRegular():
		if s.kind, err = recordlog.Identify(name); err == nil && s.kind == 0 {
			s.backup, err = isBackup(name)
		}
		return s, err
	case !info.IsDir():
		return s, nil
	}
	digits := strings.Repeat("[0-9]", 20) // in a segment's name
	for _, dir := range []string{name, collector.JournalFolder(name)} {
		if len(glob(dir, "MANIFEST", digits+".seg", digits+".open")) > 0 {
			s.journal = dir
			return s, nil
		}
	}
	if s.spool = glob(name, digits+".spool", "CURSOR"); len(s.spool) == 0 {
		return s, fmt.Errorf("%s is a folder, and no journal or spool; name the files in it", name)
	}
	return s, nil
}

func isBackup(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close() // only read from
	return backup.Is(f), nil
}

// glob returns the files in dir that match one of the patterns.
func glob(dir string, patterns ...string) (files []string) {
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(dir, p))
		files = append(files, found...)
	}
	return files
}

// openLog opens text that verify or cat reads.
func openLog(name string) (*input, error) {
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	return newInput(name, f, f)
}
