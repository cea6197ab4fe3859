package syslog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzDecode sends any bytes in two pieces, and as a datagram.
func FuzzDecode(f *testing.F) {
	for _, b := range decodetest.Recorded(f, "*.request") {
		f.Add(b, len(b)/2)
	}
	f.Add([]byte("<189>*Mar  1 2025 18:46:11.040: x\n<13>Feb 29 00:00:00 a b[1] c\x00x\ny\x00"), 3)
	f.Add([]byte(`<14>1 - - a - - [x a="\\\]"][y] `+"\n999 <1>1 - - - - - {}"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		if cut < 0 || cut > len(data) {
			cut = len(data) / 2
		}
		chunk := newChunk("")
		chunk.Norm = normalize.New(normalize.Limits{MaxEventBytes: 2000, MaxPast: -1})
		session := Protocol{MaxMessage: 1000}.Open()
		left := append([]byte(nil), data[:cut]...)
		for _, next := range [][]byte{data[cut:], nil} {
			chunk.Data, chunk.End = left, next == nil
			n, err := session.Decode(chunk)
			if n < 0 || n > len(left) || err != nil {
				t.Fatalf("%d of %d bytes taken, %v", n, len(left), err)
			}
			left = append(append([]byte(nil), left[n:]...), next...)
		}
		chunk.Data = append([]byte(nil), data...)
		Protocol{}.DecodePacket(chunk)
		lines := 0
		for line := range strings.Lines(string(chunk.Batch.Lines)) {
			lines++
			if !json.Valid([]byte(line)) {
				t.Fatalf("%q became %q", data, line)
			}
		}
		if lines != chunk.Batch.Records {
			t.Fatalf("%d lines, %d records", lines, chunk.Batch.Records)
		}
	})
}
