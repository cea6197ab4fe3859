package lines

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestAuditNotices: an audit that finds nothing would be worth nothing.
func TestAuditNotices(t *testing.T) {
	const size = 64
	var good []byte
	for i := range 4 {
		for p := range 2 {
			good = Append(good, size, p, i)
		}
	}
	at := func(i int) []byte { return good[i*size : (i+1)*size] }
	for name, c := range map[string]struct {
		stream []byte
		want   Audit
		lost   int
	}{
		"good":       {good, Audit{Found: 8}, 0},
		"lost":       {good[size:], Audit{Found: 7}, 1},
		"repeated":   {slices.Concat(good, at(7)), Audit{Found: 8, Repeated: 1}, 0},
		"reordered":  {slices.Concat(at(0), at(1), at(4), at(3), at(2), good[5*size:]), Audit{Found: 8, Reordered: 1}, 0},
		"torn":       {slices.Concat(good[:len(good)-1], []byte("!\n")), Audit{Found: 7, Torn: 1}, 1},
		"cut":        {good[:len(good)-1], Audit{Found: 7, Torn: 1}, 1},
		"mixed":      {slices.Concat(at(0)[:30], at(1), at(0)[30:], good[2*size:]), Audit{Found: 6, Torn: 2}, 2},
		"too long":   {slices.Concat(good, bytes.Repeat([]byte("x"), 3<<20), []byte("\n")), Audit{Found: 8, Torn: 1}, 0},
		"foreign":    {slices.Concat(good, Append(nil, size, 7, 0)), Audit{Found: 8, Torn: 1}, 0},
		"not padded": {slices.Concat(good[:len(good)-1], []byte("  \n"), make([]byte, 3)), Audit{Found: 7, Torn: 2}, 1},
		"skipped":    {slices.Concat(good, []byte("a notice\n")), Audit{Found: 8}, 0},
	} {
		a := NewAudit(2, Parser(size))
		a.Skip = func(line []byte) bool { return string(line) == "a notice\n" }
		if err := a.Read(bytes.NewReader(c.stream)); err != nil {
			t.Fatal(err)
		}
		if lost := a.Lost(0, 4) + a.Lost(1, 4); a.Found != c.want.Found || a.Torn != c.want.Torn || a.Repeated != c.want.Repeated || a.Reordered != c.want.Reordered || lost != c.lost || a.Bytes != int64(len(c.stream)) {
			t.Errorf("%s: %+v, %d lost, want %+v, %d lost", name, a, lost, c.want, c.lost)
		}
		_, err := a.LostPct(4, true)
		if broken := c.want.Torn + c.want.Repeated + c.want.Reordered; (err != nil) != (broken > 0) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := a.LostPct(4, false); (err == nil) != (name == "good" || name == "skipped") {
			t.Errorf("%s, not lossy: %v", name, err)
		}
	}
}

func TestAuditOfPaddedFiles(t *testing.T) {
	const size = 64
	line := func(i int) string { return string(Append(nil, size, 0, i)) }
	file := strings.Join([]string{
		line(0),
		line(2)[:size-1] + "   \n", // padded before its line end
		"    \n\n",                 // and after it
		line(1),                    // out of order
		"\x00\x00\x00" + line(3),   // after a block filled with NULs
		"\x00\x00",
	}, "")
	a := NewAudit(1, Parser(size))
	a.Padded = true
	if err := a.Read(strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if a.Found != 4 || a.Torn+a.Repeated > 0 || a.Reordered != 1 || a.NULs != 5 || a.Padding != 9 {
		t.Errorf("%+v", a)
	}
	broken := errors.New("broken")
	if err := a.Read(io.MultiReader(strings.NewReader("x"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("a file that cannot be read gives %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
