package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Save writes results to a file, made with its folder, as JSON with a line for each
// object of a list, so that versions of a file can be compared.
func Save(path string, results any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(results); err != nil {
		return err
	}
	laidOut := bytes.ReplaceAll(bytes.ReplaceAll(text.Bytes(), []byte("[{"), []byte("[\n{")), []byte("},{"), []byte("},\n{"))
	if !json.Valid(laidOut) { // some text has such brackets
		laidOut = text.Bytes()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, laidOut)
}

// replace writes the whole file at path or nothing. A path that is not a
// regular file, as /dev/null, is written to in place.
func replace(path string, content []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, content, 0o644)
	}
	next := path + ".new"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// Load reads results of type T from a file and checks their kind.
func Load[T any](path, kind string) (*T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var head struct {
		Kind string `json:"kind"`
	}
	r := new(T)
	if err := errors.Join(json.Unmarshal(data, &head), json.Unmarshal(data, r)); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if head.Kind != kind {
		return nil, fmt.Errorf("read %s: it has results of %q", path, head.Kind)
	}
	return r, nil
}
