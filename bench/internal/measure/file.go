package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Save writes results to a file, made with its folder, as JSON whose lists of
// objects have one item a line, so that versions of a file can be compared.
func Save(path string, results any) error {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(results); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := layOut(&out, bytes.TrimSpace(encoded.Bytes()), "\n"); err != nil {
		return err
	}
	out.WriteByte('\n')
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, out.Bytes())
}

// layOut writes value with a line for each field of an object and each object
// in a list. An item that has samples itself is laid out too.
func layOut(out *bytes.Buffer, value json.RawMessage, newline string) error {
	object := bytes.HasPrefix(value, []byte("{"))
	if !object && !bytes.HasPrefix(value, []byte("[{")) {
		out.Write(value)
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(value))
	if _, err := in.Token(); err != nil {
		return err
	}
	out.WriteByte(value[0])
	for n := 0; in.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		inner := newline
		if object {
			inner += "  "
			key, err := in.Token()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s%q: ", inner, key)
		} else {
			out.WriteByte('\n')
		}
		var item json.RawMessage
		if err := in.Decode(&item); err != nil {
			return err
		}
		if !object && !bytes.Contains(item, []byte(`"samples":[`)) {
			out.Write(item)
		} else if err := layOut(out, item, inner); err != nil {
			return err
		}
	}
	out.WriteString(newline)
	out.WriteByte(value[len(value)-1])
	return nil
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
