package remote

import (
	"strings"
	"testing"
)

func BenchmarkParseBulk(b *testing.B) {
	const lines = 250
	s := `{"errors":false,"took":3,"items":[` + strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, lines), ",") + "]}"
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		if _, err := parseBulk(strings.NewReader(s), lines); err != nil {
			b.Fatal(err)
		}
	}
}
