package vectors

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// The table agrees with encoding/json wherever RFC 8259 leaves no choice, no
// text occurs in it twice, and it is as large as it says.
func TestTable(t *testing.T) {
	all := Values()
	groups := map[bool]int{}
	seen := map[string]bool{}
	choices := 0
	for i := range all {
		v := &all[i]
		if seen[v.Text] {
			t.Errorf("%s is in the table twice", v.Name())
		}
		seen[v.Text] = true
		if v.Choice != "" {
			choices++
			if !v.UTF8 && utf8.ValidString(v.Text) {
				t.Errorf("%s is valid UTF-8", v.Name())
			}
			continue
		}
		groups[v.Accept]++
		if valid := json.Valid([]byte(v.Text)); valid != v.Accept {
			t.Errorf("%s: the table says %v, encoding/json %v", v.Name(), v.Accept, valid)
		}
		if v.Accept && !utf8.ValidString(v.Text) {
			t.Errorf("%s must be accepted and is not UTF-8", v.Name())
		}
	}
	t.Logf("%d vectors: %d to accept, %d to reject, %d by choice", len(all), groups[true], groups[false], choices)
	if len(all) != 846 || groups[true] < 200 || groups[false] < 400 || choices < 80 {
		t.Error("vectors are missing, or docs/INGEST.md is to be changed")
	}
}
