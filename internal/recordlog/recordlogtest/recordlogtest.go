// Package recordlogtest has what the tests of record logs share.
package recordlogtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/recordlog"
)

// WithChecksums returns data with the right checksums in all headers, so that a fuzzer gets
// past them.
func WithChecksums(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) >= recordlog.HeaderSize && recordlog.KindOf(data) != 0 {
		body := data[recordlog.HeaderSize:]
		if n := binary.LittleEndian.Uint64(data[48:]); n <= uint64(len(body)) {
			binary.LittleEndian.PutUint32(data[56:], recordlog.Checksum(body[:n]))
		}
		binary.LittleEndian.PutUint32(data[60:], recordlog.Checksum(data[:60]))
	}
	for pos := 0; pos+recordlog.FrameHeaderSize <= len(data); pos++ {
		b := data[pos:]
		if string(b[:4]) != "\xffRWF" {
			continue
		}
		n := int(binary.LittleEndian.Uint32(b[12:]))
		if keys := int(binary.LittleEndian.Uint32(b[52:])); b[61] == recordlog.FlagBlocks && keys < n && recordlog.FrameHeaderSize+keys+4 <= len(b) {
			n = keys + 4 + int(binary.LittleEndian.Uint32(b[recordlog.FrameHeaderSize+keys:]))
		}
		if n <= len(b)-recordlog.FrameHeaderSize {
			binary.LittleEndian.PutUint32(b[8:], recordlog.Checksum(b[recordlog.FrameHeaderSize:][:n]))
		}
		binary.LittleEndian.PutUint32(b[4:], recordlog.Checksum(b[8:recordlog.FrameHeaderSize]))
	}
	return data
}

// CheckTables fails t unless the page doc has the byte tables of each source file.
func CheckTables(t *testing.T, doc string, files ...string) {
	t.Helper()
	page, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(src)) {
			rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
			if !ok || strings.TrimSpace(rest) == "" {
				continue
			}
			n++
			if !strings.Contains(string(page), "\n"+rest+"\n") {
				t.Errorf("%s does not have the line %q of %s", doc, rest, file)
			}
		}
		if n == 0 {
			t.Errorf("%s has no table", file)
		}
	}
}
