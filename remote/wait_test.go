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
// and of one that was taken in part.
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

// wantWait writes three lines, has taken of them accepted, and wants the error to ask
// for 7 s.
func wantWait(t *testing.T, w io.Writer, taken int) {
	t.Helper()
	n, err := w.Write([]byte(numbered(0, 3)))
	var asks interface{ RetryAfter() time.Duration }
	if want := len(numbered(0, taken)); n != want || !errors.As(err, &asks) || asks.RetryAfter() != 7*time.Second {
		t.Errorf("Write = %d, %v, want %d and an error that asks for 7 s", n, err, want)
	}
}
