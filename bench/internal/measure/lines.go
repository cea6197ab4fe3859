package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A List is a field of results that is written with one item a line, so that
// versions of a file can be compared.
type List struct {
	name  string
	items []json.Marshaler
}

// ListOf names the items of the field that has name in JSON.
func ListOf[T any](name string, items []T) List {
	l := List{name: name}
	for _, it := range items {
		l.items = append(l.items, plain{it})
	}
	return l
}

// plain is JSON without the escapes that HTML needs.
type plain struct{ v any }

func (p plain) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p.v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// SaveLines writes head to a file, made with its folder, as indented JSON. Each
// list is written in the place of the field of its name, which is null in head;
// lists of one name take such fields in their order.
func SaveLines(path string, head any, lists ...List) error {
	encoded, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	for _, l := range lists {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%q: [", l.name)
		for i, it := range l.items {
			line, err := it.MarshalJSON()
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.Write(line)
		}
		b.WriteString("\n]")
		null := fmt.Appendf(nil, "%q: null", l.name)
		if !bytes.Contains(encoded, null) {
			return fmt.Errorf("save %s: there is no place for %s", path, l.name)
		}
		encoded = bytes.Replace(encoded, null, b.Bytes(), 1)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, append(encoded, '\n'))
}

// replace writes the file at path whole or not at all. What is no file, as
// /dev/null, is written to.
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

// Load reads results of type T from a file, and checks that they are of a kind.
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
		return nil, fmt.Errorf("read %s: it holds results of %q", path, head.Kind)
	}
	return r, nil
}
