package rollway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestOtherReaders: jq and Python's json accept every line and decode it to
// what encoding/json makes of it.
func TestOtherReaders(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	for i := range 256 {
		s := "a" + string([]byte{byte(i)}) + "b"
		raw, _ := json.Marshal(s) // in which a byte that is not UTF-8 is put back
		raw = bytes.ReplaceAll(raw, []byte(`\ufffd`), []byte{byte(i)})
		l.Named(s).Info(t.Context(), s, slog.String(s, s), slog.Any("error", fmt.Errorf("%s", s)),
			slog.Any("panic", panics{s}), slog.Any("valuer", panickingWith{s}), slog.Any("raw", json.RawMessage(raw)), slog.Any("marshaler", rawMarshaler(raw)),
			slog.Any("map", map[string]string{s: s}), slog.Any("struct", struct{ A any }{s}), slog.Any("list", &[]string{s}),
			slog.Any("object", &user{1, tags{s}}), slog.Any("stringer", stringer(s)), slog.Group(s, slog.String(s, s)))
	}
	for _, c := range rawCases {
		l.Info(t.Context(), "raw", slog.Any("raw", json.RawMessage(c.raw)), slog.Any("marshaler", rawMarshaler(c.raw)))
	}
	for _, s := range []string{"\u2028\u2029", "😀", "\xf0\x9f\x98", "\xed\xa0\x80", strings.Repeat("é\n", 100), "\x00", "\U0010ffff"} {
		l.With(slog.String("w", s)).WithGroup(s).Info(t.Context(), s, slog.String("v", s))
	}
	// jq keeps numbers as float64, so none here is beyond it.
	l.Info(t.Context(), "numbers", slog.Float64("nan", math.NaN()), slog.Float64("inf", math.Inf(-1)), slog.Float64("small", 5e-324),
		slog.Float64("large", math.MaxFloat64), slog.Int64("int", 1<<53), slog.Float64("e", 1e21), slog.Float64("f", 0.1))
	lines := b.Bytes()

	for name, command := range map[string][]string{
		"jq":      {"jq", "-c", "."},
		"python3": {"python3", "-c", "import sys, json\nfor l in sys.stdin.buffer.read().split(b'\\n')[:-1]: print(json.dumps(json.loads(l.decode('utf-8', 'strict'))))"},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Program(t, command[0])
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Stdin = bytes.NewReader(lines)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v", err)
			}
			theirs := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			ours := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
			if len(theirs) != len(ours) {
				t.Fatalf("%d lines of %d", len(theirs), len(ours))
			}
			for i := range ours {
				if got, want := canonical(t, theirs[i]), canonical(t, ours[i]); got != want {
					t.Errorf("it reads %s\nas       %s", want, got)
				}
			}
		})
	}
}

// canonical is what encoding/json makes of a line, written anew.
func canonical(t *testing.T, line []byte) string {
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
