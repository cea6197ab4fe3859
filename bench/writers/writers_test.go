package writers

import (
	"strings"
	"testing"
)

func TestParseLoggedNotices(t *testing.T) {
	good := `{"time":"2026-11-21T08:14:19Z","level":"INFO","msg":"payment settled","attrs":{"worker":12,"seq":1000000007,"pad":"xxx"}}` + "\n"
	parse := parseLogged("xxx")
	if worker, seq, ok := parse([]byte(good)); worker != 2 || seq != 7 || !ok {
		t.Fatalf("parse(%s) = %d, %d, %v", good, worker, seq, ok)
	}
	for _, change := range [][2]string{{"xxx", "xx"}, {"\n", ""}, {"}}", "}"}, {`"seq":1000000007`, `"seq":"1000000007"`}, {"worker", "w"}, {"settled", ""}} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, _, ok := parse([]byte(bad)); ok {
			t.Errorf("taken: %s", bad)
		}
	}
}
