package remote_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// init lets the test binary be the process that TestSpillKill kills.
func init() {
	if dir := os.Getenv("REMOTE_TEST_SPILL"); dir != "" {
		writeUntilKilled(dir, os.Getenv("REMOTE_TEST_PEER"), os.Getenv("REMOTE_TEST_ROUND"))
		os.Exit(1)
	}
}

// writeUntilKilled writes lines from two goroutines and prints "producer seq"
// of the last line of each Write that returned nil.
func writeUntilKilled(dir, url, round string) {
	w, err := remote.Open(url, remote.Options{Spill: remote.Spill{Dir: dir}, OnError: func(error) {}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("open", w.Stats().Recovered)
	failed := make(chan error)
	for p := range 2 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(p), 5))
			for seq := 0; ; {
				var b []byte
				for range 1 + rng.IntN(20) {
					b = fmt.Appendf(b, `{"msg":"%s %s","attrs":{"producer":%d,"seq":%d}}`+"\n", round, strings.Repeat("x", rng.IntN(200)), p, seq)
					seq++
				}
				if _, err := w.Write(b); err != nil {
					failed <- err
					return
				}
				os.Stdout.WriteString(fmt.Sprintf("%d %d\n", p, seq-1))
				time.Sleep(100 * time.Microsecond) // real time: a process by itself
			}
		}()
	}
	fmt.Fprintln(os.Stderr, <-failed)
}

// A process that is killed at a random moment, 60 times over one folder, while
// the peer comes and goes: every line whose Write had returned nil is delivered
// by a later one, in order, and stored once by a peer that knows the keys.
func TestSpillKill(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("REMOTE_TEST_SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	t.Logf("replay with: REMOTE_TEST_SEED=%d go test -run TestSpillKill ./remote", seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	peer := newKeyedPeer(t)
	dir := t.TempDir()
	const rounds = 60
	acked := map[string]int{} // "round producer" → last seq
	var lines, recovered, notEmpty int
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "REMOTE_TEST_SPILL="+dir, "REMOTE_TEST_PEER="+peer.url(), fmt.Sprint("REMOTE_TEST_ROUND=", round))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(out)
		if !scanner.Scan() || !strings.HasPrefix(scanner.Text(), "open ") {
			cmd.Wait()
			t.Fatalf("round %d: the child does not start: %s%s", round, scanner.Text(), errs.String())
		}
		fmt.Sscanf(scanner.Text(), "open %d", &recovered)
		if recovered > 0 {
			notEmpty++
		}
		limit := 1 + rng.IntN(60)
		up, down := rng.IntN(limit+1), limit+1 // Writes at which the peer comes and goes
		switch round % 4 {
		case 0: // away all the time
			up = down
		case 1:
			up = 0
		case 2:
			up, down = 0, up
		case 3:
			down = up + 1 + rng.IntN(limit)
		}
		for n := 0; ; n++ {
			if n == up {
				peer.up()
			}
			if n == down {
				peer.down()
			}
			if !scanner.Scan() {
				break
			}
			var p, seq int
			if c, err := fmt.Sscan(scanner.Text(), &p, &seq); c < 2 || err != nil || !strings.HasSuffix(scanner.Text(), fmt.Sprint(seq)) {
				break // the line that the kill cut
			}
			key := fmt.Sprintf("%d %d", round, p)
			if last, ok := acked[key]; ok {
				lines -= last + 1
			}
			lines += seq + 1
			acked[key] = seq
			if n == limit {
				cmd.Process.Kill()
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
		peer.down()
		if errs.Len() > 0 {
			t.Fatalf("round %d: %s", round, errs.String())
		}
	}
	peer.up()
	w := open(t, peer.url(), remote.Options{Spill: remote.Spill{Dir: dir}})
	flush(t, w)
	s := balanced(t, w)
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 2 { // LOCK and CURSOR
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	seen := map[string]map[int]int{}
	twice, before, disorder := 0, map[string]int{}, 0
	for line := range bytes.Lines(peer.bytes()) {
		var round, p, seq int
		var pad string
		if _, err := fmt.Sscanf(string(line), `{"msg":"%d %s`, &round, &pad); err != nil {
			t.Fatalf("torn line %q: %v", line, err)
		}
		at := bytes.Index(line, []byte(`{"producer":`))
		if at < 0 {
			t.Fatalf("torn line %q", line)
		}
		if _, err := fmt.Sscanf(string(line[at:]), `{"producer":%d,"seq":%d}}`, &p, &seq); err != nil {
			t.Fatalf("torn line %q: %v", line, err)
		}
		key := fmt.Sprintf("%d %d", round, p)
		if seen[key] == nil {
			seen[key] = map[int]int{}
			before[key] = -1
		}
		if seen[key][seq]++; seen[key][seq] > 1 {
			twice++
		} else if seq != before[key]+1 {
			disorder++
		} else {
			before[key] = seq
		}
	}
	for key, last := range acked {
		for seq := range last + 1 {
			if seen[key][seq] == 0 {
				t.Fatalf("round and producer %s: line %d of %d, whose Write returned nil, is missing", key, seq, last)
			}
		}
	}
	if disorder > 0 || twice > 0 {
		t.Errorf("%d lines came before one that was written earlier, %d were stored twice", disorder, twice)
	}
	t.Logf("%d rounds, %d of them began with lines on disk; %d lines acknowledged, 0 lost, %d twice, %d requests repeated and recognized by their key; the last Writer found %d lines",
		rounds, notEmpty, lines, twice, peer.repeated, s.Recovered)
	if lines == 0 || notEmpty < rounds/4 {
		t.Errorf("%d lines, %d rounds with lines on disk: nothing is tested", lines, notEmpty)
	}
}
