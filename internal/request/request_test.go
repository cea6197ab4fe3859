package request

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestValidID(t *testing.T) {
	for _, id := range []string{"a", "9f1c2e", "req-1.2_3~4:5/6+7=8@9", NewID(), strings.Repeat("x", 128)} {
		if !ValidID(id) {
			t.Errorf("ValidID(%q) = false", id)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 129), "a b", "a\nb", `a"b`, "a,b", "ä", "a\x00", "<a>", "$(a)", "a;b", "%0a"} {
		if ValidID(id) {
			t.Errorf("ValidID(%q) = true", id)
		}
	}
	if a, b := NewID(), NewID(); a == b {
		t.Errorf("two ids are %s", a)
	}
}

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func TestTrace(t *testing.T) {
	for _, c := range []struct {
		parent string
		ok     bool
	}{
		{"00-" + traceID + "-" + spanID + "-01", true},
		{"00-" + traceID + "-" + spanID + "-00", true},
		{"cc-" + traceID + "-" + spanID + "-01", true},
		{"cc-" + traceID + "-" + spanID + "-01-what comes later", true},
		{"cc-" + traceID + "-" + spanID + "-01.what", false},
		{"00-" + traceID + "-" + spanID + "-01-more", false},
		{"ff-" + traceID + "-" + spanID + "-01", false},
		{"0g-" + traceID + "-" + spanID + "-01", false},
		{"00-" + traceID + "-" + spanID + "-0x", false},
		{"00-" + strings.ToUpper(traceID) + "-" + spanID + "-01", false},
		{"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", false},
		{"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", false},
		{"00_" + traceID + "-" + spanID + "-01", false},
		{"00-" + traceID + "-" + spanID + "-0", false},
		{"", false},
	} {
		tr, sp, ok := Trace(c.parent)
		if ok != c.ok || ok && (tr != traceID || sp != spanID) || !ok && tr+sp != "" {
			t.Errorf("Trace(%q) = %q, %q, %v", c.parent, tr, sp, ok)
		}
	}
}

// FuzzTrace: what is taken for ids are ids, and stand where they must.
func FuzzTrace(f *testing.F) {
	f.Add("00-" + traceID + "-" + spanID + "-01")
	f.Add("cc-" + traceID + "-" + spanID + "-01-x")
	f.Add("")
	f.Fuzz(func(t *testing.T, parent string) {
		tr, sp, ok := Trace(parent)
		if !ok {
			return
		}
		a, errA := hex.DecodeString(tr)
		b, errB := hex.DecodeString(sp)
		if errA != nil || errB != nil || len(a) != 16 || len(b) != 8 || strings.Trim(tr, "0") == "" || strings.Trim(sp, "0") == "" {
			t.Errorf("Trace(%q) = %q, %q", parent, tr, sp)
		}
		if !strings.HasPrefix(parent[2:], "-"+tr+"-"+sp+"-") {
			t.Errorf("Trace(%q) = %q, %q: not from there", parent, tr, sp)
		}
	})
}

// FuzzValidID: an id that is taken over is the same in a line, a header and a
// shell.
func FuzzValidID(f *testing.F) {
	f.Add("req-1.2_3~4:5/6+7=8@9")
	f.Add("a\r\nSet-Cookie: x")
	f.Fuzz(func(t *testing.T, id string) {
		if !ValidID(id) {
			return
		}
		if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'\\`$&;|<>(){}[]*?!#%,^", r)
		}) {
			t.Errorf("ValidID(%q) = true", id)
		}
	})
}
