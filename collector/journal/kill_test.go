package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// TestMain lets the test binary be the process that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_TEST_CHILD"); dir != "" {
		appendUntilKilled(dir)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendUntilKilled appends from four goroutines and prints "first records"
// for each acknowledged batch, one write(2) a line.
func appendUntilKilled(dir string) {
	j, err := Open(dir, Options{SegmentBytes: 64 << 10, Pack: true, Tenants: map[string]Retention{"t3": {Bytes: 2000}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, f := range j.Recovery().Findings {
		fmt.Fprintln(os.Stderr, f)
	}
	fmt.Println("open", j.Next())
	failed := make(chan error)
	for p := range 4 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(p), 3))
			for i := 0; ; i++ {
				b := Batch{Records: 1 + rng.IntN(20), MaxTime: 1, Synced: i%16 == 0}
				for r := range b.Records {
					b.Lines = fmt.Appendf(b.Lines, `{"msg":"%d.%d.%d %s","attrs":{"tenant":"t%d"}}`+"\n", p, i, r, strings.Repeat("x", rng.IntN(300)), p)
				}
				first, err := j.Append(context.Background(), b)
				if err != nil {
					failed <- err
					return
				}
				os.Stdout.WriteString(fmt.Sprintf("%d %d %d.%d.\n", first, b.Records, p, i))
			}
		}()
	}
	fmt.Fprintln(os.Stderr, <-failed)
}

// A process that is killed at a random moment, 20 times over one folder, loses
// nothing that it acknowledged and leaves nothing torn.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("JOURNAL_TEST_SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	t.Logf("replay with JOURNAL_TEST_SEED=%d go test -run TestKill", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	dir := t.TempDir()
	acked := map[uint64]string{} // offset → "producer.batch.record "
	torn := 0
	fresh := true // no process has lived long enough to write a manifest
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JOURNAL_TEST_CHILD="+dir)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		testkit.OK(t, err)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(out)
		if !scanner.Scan() || !strings.HasPrefix(scanner.Text(), "open ") {
			t.Fatalf("round %d: the child does not start: %s", round, errs.String())
		}
		var kill *time.Timer
		for n := 0; ; n++ {
			// Half of them are killed from a first answer on, however slow the machine.
			if n == round%2 {
				kill = time.AfterFunc(time.Duration(rng.IntN(60))*time.Millisecond, func() { cmd.Process.Kill() })
			}
			if !scanner.Scan() {
				break
			}
			var first uint64
			var n int
			var id string
			if _, err := fmt.Sscan(scanner.Text(), &first, &n, &id); err != nil {
				break // the line that the kill cut
			}
			for r := range n {
				key := first + uint64(r)
				if was, ok := acked[key]; ok {
					t.Fatalf("offset %d was given to %s and to %s", key, was, id)
				}
				acked[key] = fmt.Sprintf("%s%d ", id, r)
			}
		}
		if kill != nil {
			kill.Stop()
		}
		cmd.Wait()
		without := strings.Contains(errs.String(), "MANIFEST: "+string(recordlog.Rebuilt))
		fresh = fresh && (without || round == 0)
		for line := range strings.Lines(errs.String()) {
			if fresh && strings.HasPrefix(line, "MANIFEST: ") {
				continue
			}
			switch {
			case strings.Contains(line, string(recordlog.TornTail)), strings.Contains(line, string(recordlog.EmptyRemoved)):
				torn++
			case !strings.Contains(line, string(recordlog.Deleted)): // of one tenant alone
				t.Errorf("round %d: %s", round, line)
			}
		}
	}
	// With a retention, of a tenant that has no lines.
	j := mustOpen(t, dir, Options{Pack: true, Tenants: map[string]Retention{"none": {Bytes: 1}}})
	found := map[uint64]string{}
	r := j.NewReader(0)
	defer r.Close()
	dropped := 0
	for {
		f, ok, err := r.TryNext()
		var gap *Gap
		// The oldest segments go as a whole, if they have nothing else.
		if errors.As(err, &gap) && (gap.Retention || len(found) == 0) {
			for o := gap.From; o < gap.To; o++ {
				if id, ok := acked[o]; ok && !strings.HasPrefix(id, "3.") {
					t.Fatalf("seed %d: offset %d, acknowledged as %q, was deleted by the retention of another tenant", seed, o, id)
				}
				delete(acked, o)
				dropped++
			}
			continue
		}
		testkit.OK(t, err)
		if !ok {
			break
		}
		for i, line := range strings.SplitAfter(strings.TrimSuffix(string(f.Lines), "\n"), "\n") {
			found[f.First+uint64(i)] = strings.TrimPrefix(line, `{"msg":"`)
		}
	}
	for offset, id := range acked {
		if !strings.HasPrefix(found[offset], id) {
			t.Fatalf("seed %d: offset %d was acknowledged as %q, found %.20q", seed, offset, id, found[offset])
		}
	}
	rep, err := Audit(dir, AuditOptions{})
	if err != nil || len(rep.Damage(0)) > 0 || rep.Records != int64(len(found)) {
		t.Fatalf("Audit: %+v, %v", rep, err)
	}
	t.Logf("%d records acknowledged, %d deleted by retention, %d found in %d segments, %d tails cut", len(acked), dropped, len(found), len(rep.List), torn)
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
}
