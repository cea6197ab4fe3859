package deadletter

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// rejected is a batch in which all events of body were rejected.
func rejected(t *testing.T, limit int, body string) *normalize.Batch {
	t.Helper()
	b := new(normalize.Batch)
	b.KeepDeadLetters(limit)
	normalize.New(normalize.Limits{MaxRejections: 1}).Body(b, []byte(body), time.Now()) // the error is in the batch
	if b.Records != 0 || b.RejectedTotal == 0 {
		t.Fatalf("%q: %d records", body, b.Records)
	}
	return b
}

func entries(t *testing.T, dir string) (all []Entry, size int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "rejected*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		size += int64(len(data))
		for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
			var l Entry
			if err := json.Unmarshal(in.Bytes(), &l); err != nil {
				t.Fatalf("%v: %.200q", err, in.Bytes())
			}
			all = append(all, l)
		}
	}
	return all, size
}

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rejected")
	box, err := Open(dir, 1<<20, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	box.Add("/api/logs", "shop", at, rejected(t, 1000, "{\"a\":}\n7\n\"\xff\"\n"))
	box.Add("lines", "", at, rejected(t, 5, "\"longer\""))
	box.Add("lines", "", at, rejected(t, 0, "8"))
	box.Add("lines", "", at, new(normalize.Batch)) // nothing in it
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if s := box.Stats(); s != (Stats{Kept: 4, Lost: 1}) {
		t.Errorf("%+v", s)
	}
	got, _ := entries(t, dir)
	if len(got) != 4 {
		t.Fatalf("%d dead letters", len(got))
	}
	for i, l := range got {
		if len(l.ID) != ulid.Len || i > 0 && l.ID <= got[i-1].ID {
			t.Errorf("entry %d has the id %q, behind one of %q", i, l.ID, got[max(i-1, 0)].ID)
		}
	}
	if l := got[0]; l.Event != `{"a":}` || l.Reason != "syntax" || l.Detail == "" || l.Receiver != "/api/logs" || l.Tenant != "shop" || !l.Time.Equal(at) || l.Cut {
		t.Errorf("%+v", l)
	}
	if l := got[1]; l.Event != "7" || l.Reason != "not_object" || l.Detail != "" {
		t.Errorf("%+v", l)
	}
	if l := got[2]; l.Base64 != base64.StdEncoding.EncodeToString([]byte("\"\xff\"")) {
		t.Errorf("%+v", l)
	}
	if l := got[3]; l.Event != `"long` || !l.Cut || l.Tenant != "" {
		t.Errorf("%+v", l)
	}
}

// What an event came in is kept with it as far as there is room, and apart from
// the event; without an event of its own none is kept.
func TestContext(t *testing.T) {
	dir := t.TempDir()
	box, err := Open(dir, 1<<20, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	appends := func(text string) func([]byte) []byte {
		return func(dst []byte) []byte { return append(dst, text...) }
	}
	keep := func(limit int, withhold bool, context string, event string) {
		t.Helper()
		batch := new(normalize.Batch)
		batch.KeepDeadLetters(limit)
		batch.WithholdText(withhold)
		n := normalize.New(normalize.Limits{})
		b := n.Build(batch, time.Now())
		b.Raw([]byte(event))
		b.Reject(normalize.ReasonSyntax, "broken")
		b.Context(len(context), appends(context))
		b.Raw(nil)
		b.Reject(normalize.ReasonSyntax, "nothing of it is there")
		b.Context(1, appends("x"))
		b.Done()
		box.Add("d", "", time.Now(), batch)
	}
	keep(100, false, "tag", "one")
	keep(100, false, "", "two")
	keep(100, false, "\xff", "three")
	keep(8, false, "tags", "4four")
	keep(1<<20, false, strings.Repeat("t", normalize.MaxContext+1), "five")
	keep(100<<10, true, "secret", "six")
	batch := new(normalize.Batch)
	batch.KeepDeadLetters(100)
	batch.AddBody(normalize.ReasonSyntax, "broken", []byte("all"))
	batch.Discard(false)
	box.Add("d", "", time.Now(), batch)
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := entries(t, dir)
	for i, want := range []struct {
		event, context string
		has, cut, more bool
	}{
		{"one", "tag", true, false, false}, {"two", "", true, false, false}, {"three", "\xff", true, false, false},
		{"4four", "", false, true, false}, {"five", "", false, true, false}, {"", "", false, false, true}, {"all", "", false, false, true},
	} {
		if i >= len(got) {
			t.Fatalf("%d dead letters", len(got))
		}
		l := got[i]
		text, err := l.Text()
		context, errContext := l.ContextBytes()
		if err != nil || errContext != nil || string(text) != want.event || string(context) != want.context || (context != nil) != want.has || l.ContextCut != want.cut || (l.Whole || l.Withheld) != want.more {
			t.Errorf("entry %d is %+v, want %+v", i, l, want)
		}
	}
}

// The oldest go when there are more than the Box holds; many write at once.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	const bound = 1 << 20
	box, err := Open(dir, bound, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			for i := range 200 {
				box.Add("d", "", time.Now(), rejected(t, 1<<20, fmt.Sprintf("%q", fmt.Sprintf("%d-%d-%s", p, i, strings.Repeat("x", 5000)))))
			}
		})
	}
	wg.Wait()
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	got, size := entries(t, dir)
	if size > bound || size < bound/2 {
		t.Errorf("%d bytes are kept, the bound is %d", size, bound)
	}
	last := map[string]bool{}
	for _, l := range got {
		last[strings.SplitN(strings.Trim(l.Event, `"`), "-x", 2)[0]] = true
	}
	newest := false // of all, which is some producer's last
	for p := range 4 {
		newest = newest || last[fmt.Sprintf("%d-199", p)]
	}
	if !newest {
		t.Errorf("the newest is not there")
	}
	if s := box.Stats(); s.Kept != 800 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOpenThatCannotBe(t *testing.T) {
	if _, err := Open(t.TempDir(), 1000, nil); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a small bound: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, 1<<20, nil); err == nil {
		t.Error("a file as the folder")
	}
}
