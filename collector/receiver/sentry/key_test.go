package sentry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// A request is named by its event if there is exactly one, and its id is one.
func TestKeyOfRequest(t *testing.T) {
	const event = "{\"type\":\"event\"}\n{\"message\":\"a\"}\n"
	for _, c := range []struct{ id, items, suffix string }{
		{"9ec79c33ec9942ab8353589fcb2e04dc", event, "sentry/7/9ec79c33ec9942ab8353589fcb2e04dc/1"},
		{"9EC79C33-EC99-42AB-8353-589FCB2E04DC", event, "sentry/7/9ec79c33ec9942ab8353589fcb2e04dc/1"},
		{"9ec79c33ec9942ab8353589fcb2e04dc", event + event, ""},
		{"00000000000000000000000000000000", event, ""},
		{"9ec79c33ec9942ab8353589fcb2e04d", event, ""},
	} {
		s := decodetest.NewServer(t, nil)
		mux := http.NewServeMux()
		mux.Handle("/api/{project}/envelope/", s.Handler(Envelope))
		rec := decodetest.Send(mux, "/api/7/envelope/", `{"event_id":"`+c.id+"\"}\n"+c.items)
		key := s.Options.Key
		if rec.Code != 200 || c.suffix == "" && key != "" || !strings.HasSuffix(key, c.suffix) {
			t.Errorf("%s with %d bytes of items: %d, key %q, want %q", c.id, len(c.items), rec.Code, key, c.suffix)
		}
	}
}
