package query

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// canonical tells whether the slow evaluation is right about line: a canonical
// line that holds no key twice.
func canonical(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if !json.Valid(line) || !utf8.Valid(line) || len(line) == 0 || line[0] != '{' {
		return false
	}
	var compact bytes.Buffer
	if json.Compact(&compact, line) != nil || !bytes.Equal(compact.Bytes(), line) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if !uniqueKeys(dec) {
		return false
	}
	if _, err := dec.Token(); err != io.EOF {
		return false
	}
	dec = json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	dec.Token()
	last := -1
	for dec.More() {
		key, _ := dec.Token()
		id := fieldOf([]byte(key.(string)))
		if id == fieldUnknown || int(id) <= last {
			return false
		}
		last = int(id)
		var v any
		if dec.Decode(&v) != nil {
			return false
		}
		s, isString := v.(string)
		switch id {
		case fieldTime:
			t, err := time.Parse(time.RFC3339Nano, s)
			if err != nil || t.UTC().Format("2006-01-02T15:04:05.000000000Z") != s {
				return false
			}
		case fieldLevel:
			if _, ok := levels.Parse([]byte(s)); !ok {
				return false
			}
		case fieldSource, fieldError:
		case fieldAttrs:
			if _, ok := v.(map[string]any); !ok {
				return false
			}
		default:
			if !isString {
				return false
			}
		}
	}
	return plainFields(line)
}

// plainFields tells whether the top-level keys, and the time and the level, are
// written without escapes, as the collector writes them.
func plainFields(line []byte) bool {
	for i := 1; i < len(line) && line[i] == '"'; i++ {
		end, escaped := jsonwalk.SkipString(line, i)
		if end < 0 || escaped {
			return false
		}
		value := end + 1
		id := fieldOf(line[i+1 : end-1])
		i = jsonwalk.SkipValue(line, value)
		if (id == fieldTime || id == fieldLevel) && bytes.IndexByte(line[value:i], '\\') >= 0 {
			return false
		}
	}
	return true
}

func uniqueKeys(dec *json.Decoder) bool {
	token, err := dec.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil || seen[key.(string)] {
				return false
			}
			seen[key.(string)] = true
			if !uniqueKeys(dec) {
				return false
			}
		}
		_, err = dec.Token()
	case json.Delim('['):
		for dec.More() {
			if !uniqueKeys(dec) {
				return false
			}
		}
		_, err = dec.Token()
	}
	return err == nil
}

var exponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// hugeExponent tells whether big.Rat would take its time over a number.
func hugeExponent(expr string, line []byte) bool {
	return exponent.MatchString(expr) || exponent.Match(line)
}
