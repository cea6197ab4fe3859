package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// The engines' Retry-After gets to the caller: of a request refused as a whole,
// and of one of which only some lines were taken.
func TestRetryAfterOfEngines(t *testing.T) {
	t.Parallel()
	for _, code := range []int{429, 503} {
		t.Run(fmt.Sprint("loki, ", code), func(t *testing.T) {
			peer := startLokiPeer(t)
			peer.always = status(code, "rate limit", "Retry-After", "7")
			w := open(t, peer.url(), remote.Options{})
			wantWait(t, w, 0)
		})
		t.Run(fmt.Sprint("elastic, ", code), func(t *testing.T) {
			peer := startElasticPeer(t)
			peer.always = status(code, "busy", "Retry-After", "7")
			w := open(t, peer.url(), remote.Options{})
			wantWait(t, w, 0)
		})
		t.Run(fmt.Sprint("elastic, an item, ", code), func(t *testing.T) {
			peer := startElasticPeer(t)
			peer.always = func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Retry-After", "7")
				rw.WriteHeader(200)
				fmt.Fprintf(rw, `{"errors":true,"items":[{"create":{"status":201}},{"create":{"status":%d,"error":{"type":"t","reason":"queue is full"}}},{"create":{"status":201}}]}`, code)
			}
			w := open(t, peer.url(), remote.Options{})
			wantWait(t, w, 1)
		})
	}
}

// wantWait writes three lines, of which taken are, and wants the error to ask
// for 7 s.
func wantWait(t *testing.T, w io.Writer, taken int) {
	t.Helper()
	n, err := w.Write([]byte(numbered(0, 3)))
	var asks interface{ RetryAfter() time.Duration }
	if want := len(numbered(0, taken)); n != want || !errors.As(err, &asks) || asks.RetryAfter() != 7*time.Second {
		t.Errorf("Write = %d, %v, want %d and an error that asks for 7 s", n, err, want)
	}
}

// What asks for nothing that can be understood is no wait of 0: the writer has
// its own. Of several lines the longest wait counts.
func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	future := time.Now().Add(30 * time.Minute)
	for _, c := range []struct {
		values []string
		least  time.Duration
		most   time.Duration
	}{
		{[]string{"7"}, 7 * time.Second, 7 * time.Second},
		{[]string{" 7 "}, 7 * time.Second, 7 * time.Second},
		{[]string{"4294967296"}, time.Hour, time.Hour},
		{[]string{"99999999999"}, time.Hour, time.Hour},
		{[]string{future.UTC().Format(http.TimeFormat)}, 28 * time.Minute, 30 * time.Minute},
		{[]string{future.UTC().Format("Monday, 02-Jan-06 15:04:05 GMT")}, 28 * time.Minute, 30 * time.Minute},
		{[]string{future.UTC().Format(time.ANSIC)}, 28 * time.Minute, 30 * time.Minute},
		{[]string{"3", "9", "soon"}, 9 * time.Second, 9 * time.Second},
		{[]string{"1.5"}, 0, 0},
		{[]string{"30, 60"}, 0, 0},
		{[]string{"-1"}, 0, 0},
		{[]string{"soon"}, 0, 0},
		{[]string{"0"}, 0, 0},
		{[]string{"Sat, 21 Nov 1998 04:01:00 GMT"}, 0, 0},
	} {
		busy := func(code int, body string) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header()["Retry-After"] = c.values
				rw.WriteHeader(code)
				io.WriteString(rw, body)
			}
		}
		web, loki, elastic, item := startHTTPPeer(t), startLokiPeer(t), startElasticPeer(t), startElasticPeer(t)
		web.always, loki.always, elastic.always = busy(503, ""), busy(429, ""), busy(429, "")
		item.always = busy(200, `{"errors":true,"items":[{"create":{"status":429}}]}`)
		for _, url := range []string{web.URL + "/", loki.url(), elastic.url(), item.url()} {
			w := open(t, url, remote.Options{Retries: 1, Timeout: 5 * time.Second})
			n, err := w.Write([]byte(numbered(0, 1)))
			var asks interface{ RetryAfter() time.Duration }
			if n != 0 || !errors.As(err, &asks) || asks.RetryAfter() < c.least || asks.RetryAfter() > c.most {
				t.Errorf("%q, %s: Write = %d, %v", c.values, url, n, err)
			}
			// A wait that the Timeout would cut off is not begun; else there is one of its own.
			if retries := w.Stats().Retries; (retries == 1) != (c.most == 0) {
				t.Errorf("%q, %s: %d retries", c.values, url, retries)
			}
			settled(t, w, 0, 0)
		}
	}
}
