package receivertest

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A Mask takes out of lines what differs from run to run: times that do not
// begin with Day, ids, and the values of the keys that it lists, at any depth.
type Mask []string

// Day is how times begin that a client is told to send.
const Day = "2026-05-28T12:4"

var patterns = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`"[0-9a-f]{32}"`), `"HEX32"`},
	{regexp.MustCompile(`"[0-9a-f]{16}"`), `"HEX16"`}, // but not a number of 16 digits
	{regexp.MustCompile(`\b1[789]\d{8}(\.\d+)?\b`), "SECONDS"},
	{regexp.MustCompile(`\b1[789]\d{11}\b`), "MILLISECONDS"},
}

// Lines returns lines masked, each ended by '\n'.
func (m Mask) Lines(t testing.TB, lines []string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, line := range lines {
		text := m.keys(t, line)
		for _, p := range patterns {
			text = p.re.ReplaceAllStringFunc(text, func(found string) string {
				if strings.HasPrefix(found, Day) {
					return found
				}
				return p.by
			})
		}
		all.WriteString(text + "\n")
	}
	return all.Bytes()
}

func (m Mask) keys(t testing.TB, line string) string {
	if line == "" || len(m) == 0 {
		return line
	}
	dec := jsontext.NewDecoder(strings.NewReader(line), jsontext.AllowDuplicateNames(true))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return strings.TrimSuffix(out.String(), "\n")
		}
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		kind, n := dec.StackIndex(dec.StackDepth())
		hide := kind == '{' && n%2 == 1 && slices.Contains(m, token.String())
		if err := enc.WriteToken(token); err != nil {
			t.Fatal(err)
		}
		if hide {
			if _, err := dec.ReadValue(); err != nil {
				t.Fatal(err)
			}
			if err := enc.WriteToken(jsontext.String("*")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
