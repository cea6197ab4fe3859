package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

func TestRefusedLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		body string
		want uint64
		told string
	}{
		{200, `{"accepted":3,"rejected":[{"index":1,"line":2,"reason":"json","detail":"not JSON"}]}`, 1, "line 2 of its request: not JSON"},
		{207, `{"rejected":[{"index":1,"reason":"no"},{"index":2,"reason":"x"}]}`, 2, "the first: no"},
		{400, `{"error":"nothing","accepted":0,"rejected":[{"reason":"bad"}],"rejected_total":4}`, 4, "bad"},
		{200, `{"accepted":1,"first_offset":7}`, 3, "gives no reason"},
		{200, `{"accepted":9}`, 0, ""},
		{200, `{"accepted":"yes"}`, 0, ""},
		{200, `fine`, 0, ""},
		{204, ``, 0, ""},
	} {
		peer := startHTTPPeer(t)
		peer.answer(status(c.code, c.body))
		var told []error
		w := open(t, peer.URL+"/", remote.Options{OnError: func(err error) { told = append(told, err) }})
		write(t, w, numbered(0, 4))
		write(t, w, numbered(4, 8))
		settled(t, w, 8, 8-int(c.want))
		if d := w.Stats().Dropped; d.Refused != c.want || d.Total() != c.want {
			t.Errorf("%d %s: Dropped = %+v, want %d", c.code, c.body, d, c.want)
		}
		w.Told()
		if c.want == 0 && len(told) > 0 || c.want > 0 && (len(told) != 1 || !strings.Contains(told[0].Error(), c.told)) {
			t.Errorf("%d %s: OnError was told %v, want %q", c.code, c.body, told, c.told)
		}
	}
}

// Nothing of these answers is the lines' fault: the caller keeps them.
func TestAnswersThatKeepTheLines(t *testing.T) {
	t.Parallel()
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		code   int
		header []string
		wait   time.Duration // at least
		advice string
	}{
		{302, []string{"Location", "/elsewhere?k=1"}, 0, "redirects are not followed"},
		{400, nil, 0, "NDJSON"},
		{401, nil, 0, "Options.Token"},
		{403, nil, 0, "Options.Token"},
		{404, nil, 0, "/api/logs"},
		{405, nil, 0, "/api/logs"},
		{408, nil, 0, ""},
		{415, nil, 0, "Options.DisableCompression"},
		{418, nil, 0, "check the URL"},
		{429, []string{"Retry-After", "7"}, 7 * time.Second, ""},
		{429, []string{"Retry-After", date}, 9 * time.Minute, ""}, // cut to 10 min
		{429, []string{"Retry-After", "soon"}, 0, ""},
		{500, nil, 0, ""},
		{503, []string{"Retry-After", "0"}, 0, ""},
	} {
		peer := startHTTPPeer(t)
		peer.answer(status(c.code, "the body says why secret-token "+strings.Repeat("why ", 5000), c.header...))
		w := open(t, peer.URL+"/?key=secret-token", remote.Options{Token: "secret-token"})
		p := []byte(numbered(0, 1))
		n, err := w.Write(p)
		if n != 0 || err == nil {
			t.Fatalf("%d: Write = %d, %v, want 0 and an error", c.code, n, err)
		}
		for _, want := range []string{fmt.Sprint(c.code), "the body says why", c.advice} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%d: error lacks %q: %.300s", c.code, want, err)
			}
		}
		if len(err.Error()) > 5<<10 || strings.Contains(err.Error()+fmt.Sprintf("%v%+v%#v", w.Stats().LastError, w.Stats(), w.Stats()), "secret") {
			t.Errorf("%d: %d bytes of error, or a secret in it", c.code, len(err.Error()))
		}
		var asks interface{ RetryAfter() time.Duration }
		if !errors.As(err, &asks) || asks.RetryAfter() < c.wait || c.wait == 0 && asks.RetryAfter() != 0 {
			t.Errorf("%d: RetryAfter of %.100v is not %v", c.code, err, c.wait)
		}
		settled(t, w, 0, 0)
		if s := w.Stats(); s.Returned != 1 || s.Errors != 1 || s.LastErrorTime.IsZero() {
			t.Errorf("%d: Stats = %+v", c.code, s)
		}
		write(t, w, string(p))
		peer.want(t, string(p))
		settled(t, w, 1, 1)
	}
}

// A body that a peer refuses as a whole may be the fault of one line.
func TestPoisonLine(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "poison") {
			status(400, `{"error":"the body is not JSON","accepted":0}`)(rw, r)
		}
	}
	w := open(t, peer.URL+"/", remote.Options{})
	const poison = "[poison\n"
	if n, err := w.Write([]byte(poison)); n != 0 || err == nil {
		t.Fatalf("Write to a peer that never took a line = %d, %v, want 0 and an error", n, err)
	}
	write(t, w, numbered(0, 5)+poison+numbered(5, 10)+poison)
	peer.want(t, numbered(0, 10))
	settled(t, w, 12, 10)
	// A peer that suddenly refuses everything is not believed for long.
	n, err := w.Write([]byte(strings.Repeat(poison, 100)))
	if err == nil || n > 16*len(poison) {
		t.Errorf("Write of 100 refused lines = %d, %v, want an error after 16 lines", n, err)
	}
	ledger(w).Check(t)
}
