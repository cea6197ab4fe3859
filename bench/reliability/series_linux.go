package reliability

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// series returns the files of the log at path from old to new: those that a
// writer has left behind under other names, and path itself.
func series(path string) ([]string, error) {
	names, err := filepath.Glob(path + "-*")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return append(names, path), nil
}

// readSeries returns what the series holds. With padded, it leaves out the white
// space with which direct I/O of large slabs fills blocks: spaces before a line end
// and blank lines.
func readSeries(path string, padded bool) ([]byte, error) {
	names, err := series(path)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if padded {
			content = unpad(content)
		}
		all = append(all, content...)
	}
	return all, nil
}

// unpad changes content.
func unpad(content []byte) []byte {
	kept := content[:0]
	for line := range bytes.Lines(content) {
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		if !ended {
			return append(kept, line...)
		}
		if text = bytes.TrimRight(text, " "); len(text) > 0 {
			kept = append(append(kept, text...), '\n')
		}
	}
	return kept
}

// copySeries copies the files of the log at path to the folder dir.
func copySeries(dir, path string) error {
	names, err := series(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		content, e := os.ReadFile(name)
		if e == nil {
			e = os.WriteFile(filepath.Join(dir, filepath.Base(name)), content, 0o600)
		}
		err = errors.Join(err, e)
	}
	return err
}
