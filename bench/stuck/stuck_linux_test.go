package stuck

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

func settings(t *testing.T) Settings {
	t.Helper()
	s := Settings{Dir: t.TempDir(), Limit: time.Minute}
	end, err := s.StopCollector(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	cmd := exec.Command("true")
	cmd.SysProcAttr = child.Namespace()
	if err := cmd.Run(); err != nil {
		testkit.Missing(t, "to mount a tmpfs in a namespace of its own: "+err.Error())
	}
	return s
}

// TestOwnWriters puts every writer of ours in front of a real collector that was
// stopped, or is not there. Package internal/integration has the other ways of being
// stuck.
func TestOwnWriters(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it is about time, which a busy machine does not have")
	s := settings(t)
	for _, w := range Writers() {
		if !w.Own {
			continue
		}
		for _, situation := range collector {
			for _, act := range Acts {
				if !w.Meets(situation, act) {
					continue
				}
				t.Run(strings.Join([]string{w.Name, situation, act}, "/"), func(t *testing.T) {
					t.Parallel()
					try, err := s.Try(w, situation, act)
					if err != nil {
						t.Fatal(err)
					}
					if err := try.Unexpected(w, 2*time.Second); err != nil {
						t.Errorf("%v\n%+v", err, try)
					}
				})
			}
		}
	}
}

// TestTheKitNotices: rivals that are known to hang and to withhold lines do so
// here. If they did not, the kit would find nothing in ours either.
func TestTheKitNotices(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it is about time, which a busy machine does not have")
	s := settings(t)
	s.Limit = 10 * time.Second
	for _, c := range []struct {
		writer, situation, act string
		noticed                func(Try) bool
	}{
		{"zap", Pipe, Info, func(x Try) bool { return x.InCall == producers && x.Delivered < producers*linesEach }},
		{"slog", Stopped, Info, func(x Try) bool { return x.InCall == producers }},
		{"zerolog", Hung, Fatal, func(x Try) bool { return x.Hung }},
	} {
		t.Run(c.writer, func(t *testing.T) {
			t.Parallel()
			w, err := named(c.writer)
			if err != nil {
				t.Fatal(err)
			}
			try, err := s.Try(w, c.situation, c.act)
			if err != nil {
				t.Fatal(err)
			}
			if !c.noticed(try) {
				t.Errorf("not noticed: %+v", try)
			}
		})
	}
}
