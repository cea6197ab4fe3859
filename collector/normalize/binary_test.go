package normalize

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

func TestBinary(t *testing.T) {
	var zipped, deflated bytes.Buffer
	z, d := gzip.NewWriter(&zipped), zlib.NewWriter(&deflated)
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{z, d} {
		w.Write([]byte(`{"version":"1.1","host":"web-1","short_message":"disk full","level":3}`))
		w.Close()
	}
	sum := sha256.Sum256([]byte("x"))
	for _, tt := range []struct {
		name, text       string
		isText, isBinary bool
	}{
		{"nothing", "", true, false},
		{"UTF-8", "h\u00e9llo \U0001f4b6", true, false},
		{"UTF-8 with control characters", "8=FIX.4.4\x0135=A\x01\x00\x02", true, false},
		{"Latin-1", "caf\xe9 ferm\xe9", true, false},
		{"one bad byte in Cyrillic", strings.Repeat("\u0436", 20) + "\xff", true, false},
		{"Windows-1251", "\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0", false, false},
		{"FIX in Latin-1", "8=FIX.4.4\x0158=caf\xe9\x01", false, false},
		{"colours in Latin-1", "\x1b[31mcaf\xe9\x1b[0m\r\n\t", true, false},
		{"a NUL in Latin-1", "caf\xe9\x00", false, true},
		{"gzip", zipped.String(), false, true},
		{"zlib", deflated.String(), false, true},
		{"a checksum", string(sum[:]), false, true},
	} {
		if IsText([]byte(tt.text)) != tt.isText || IsBinary([]byte(tt.text)) != tt.isBinary {
			t.Errorf("%s: text %v, binary %v", tt.name, !tt.isText, IsBinary([]byte(tt.text)))
		}
		for _, message := range []string{tt.text, tt.text + strings.Repeat(" ", long)} {
			var dst Batch
			b := New(Limits{}).Build(&dst, time.Unix(1, 0))
			b.Begin()
			b.Slot(Message)
			b.String([]byte(message))
			if b.End(); dst.RejectedFor(ReasonBinary) > 0 != tt.isBinary {
				t.Errorf("%s, a message of %d bytes: binary %v", tt.name, len(message), !tt.isBinary)
			}
			b.Done()
		}
	}
}
