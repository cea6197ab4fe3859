package remote_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

func TestWriteMetrics(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
	write(t, w, numbered(0, 3))
	eventually(t, "the peer is seen to be away", func() bool { return w.Stats().Failing && w.Stats().Spill.InFlight == 0 })
	s := w.Stats()
	var b strings.Builder
	if err := s.WriteMetrics(&b, "log", "audit"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`lines_accepted_total{log="audit"} 3`,
		`lines_written_total{log="audit"} 0`,
		`lines_dropped_total{log="audit",reason="refused"} 0`,
		`lines_pending{log="audit"} 3`,
		`connected{log="audit"} 0`,
		`spill_lines{log="audit"} 3`,
		`spill_requests_in_flight{log="audit"} 0`,
		`spill_dead_letters_total{log="audit"} 0`,
		`failing{log="audit"} 1`,
	} {
		if !strings.Contains(b.String(), "\nrollway_remote_"+want+"\n") {
			t.Errorf("no %s in:\n%s", want, b.String())
		}
	}
	if !strings.Contains(b.String(), "\nrollway_remote_last_error_timestamp_seconds{") {
		t.Errorf("no time of the error in:\n%s", b.String())
	}
	if err := s.WriteMetrics(io.Discard, "reason", "x"); err == nil {
		t.Error("a label reason was taken")
	}
	broken, end := io.Pipe()
	broken.CloseWithError(errors.ErrUnsupported)
	if err := s.WriteMetrics(end); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a Writer that fails: %v", err)
	}
	peer.up()
	flush(t, w)
}
