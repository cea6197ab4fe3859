package file_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// TestLogrotate runs the real program, again and again, while lines come.
func TestLogrotate(t *testing.T) {
	t.Parallel()
	logrotate := testkit.Program(t, "logrotate")
	for _, c := range []struct {
		name, conf string
		signal     bool // reopen on a signal only
		pause      bool // no line during logrotate: what it does then loses lines by itself
		compressed bool
		rounds     int // default 6
	}{
		{name: "create, seen by itself", conf: "create 0640"},
		{name: "create, on SIGUSR1", conf: "create 0640\npostrotate\nkill -USR1 PID\nendscript", signal: true},
		{name: "create and delaycompress, seen by itself", conf: "create 0640\ncompress\ndelaycompress", compressed: true},
		{name: "create and delaycompress, on SIGUSR1", conf: "create 0640\ncompress\ndelaycompress\npostrotate\nkill -USR1 PID\nendscript", signal: true, compressed: true},
		{name: "nocreate, seen by itself", conf: "nocreate", rounds: 2},
		{name: "dateext", conf: "create 0640\ndateext\ndateformat -%s", rounds: 2},
		{name: "copytruncate", conf: "copytruncate", pause: true},
		{name: "copytruncate and compress", conf: "copytruncate\ncompress", pause: true, compressed: true},
		{name: "copytruncate and delaycompress", conf: "copytruncate\ncompress\ndelaycompress", pause: true, compressed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rounds := c.rounds
			if rounds == 0 {
				rounds = 6
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "log")
			conf := filepath.Join(t.TempDir(), "conf")
			text := fmt.Sprintf("%s {\nrotate 100\nmissingok\n%s\n}\n", path, strings.ReplaceAll(c.conf, "PID", fmt.Sprint(os.Getpid())))
			testkit.OK(t, os.WriteFile(conf, []byte(text), 0o600))
			o := file.Options{NoFollow: c.signal, OnError: func(err error) {
				if !regexp.MustCompile("another file now|moved away|truncated").MatchString(err.Error()) {
					t.Errorf("OnError(%v)", err)
				}
			}}
			f := openChecking(t, path, o, time.Millisecond)
			if c.signal {
				f.ReopenOn(syscall.SIGUSR1)
			}
			var paused sync.Mutex
			var lines atomic.Int64
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := 0; ; i++ {
					paused.Lock()
					if _, err := fmt.Fprintf(f, "0 %d\n", i); err != nil {
						t.Errorf("Write = %v", err)
					}
					lines.Add(1)
					paused.Unlock()
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Microsecond):
					}
				}
			})
			for round := range rounds {
				from := lines.Load()
				eventually(t, "lines in the new file", func() bool { return lines.Load() > from+20 })
				if c.pause {
					paused.Lock()
				}
				out, err := exec.Command(logrotate, "-f", "-s", conf+".state", conf).CombinedOutput()
				if c.pause {
					paused.Unlock()
				}
				if err != nil {
					t.Fatalf("logrotate: %v\n%s", err, out)
				}
				if !c.pause {
					eventually(t, "the new file is in use", func() bool { return f.Stats().Reopens > uint64(round) })
				}
				if strings.HasPrefix(c.name, "dateext") {
					time.Sleep(1100 * time.Millisecond) // its names have seconds
				}
			}
			close(stop)
			wg.Wait()
			testkit.OK(t, f.Close())
			names := glob(t, path+"*")
			// A logrotate that takes more than a second to make the new file
			// finds one of ours and moves it out of its way.
			slow := len(glob(t, path+"-*.backup"))
			if len(names) != rounds+1+slow {
				t.Errorf("%d files, want %d: %v", len(names), rounds+1, names)
			}
			if packed := glob(t, path+"*.gz"); c.compressed != (len(packed) > 0) {
				t.Errorf("packed %v", packed)
			}
			data := logrotated(t, path, names)
			if slow > 0 {
				t.Logf("a slow machine: %v", names)
				data = sorted(data)
			}
			onceEach(t, data, 1, int(lines.Load()))
			ledger(f).CheckSettled(t, int(lines.Load()), int(lines.Load()))
			if s := f.Stats(); !c.signal && !c.pause && s.Followed < uint64(rounds) || c.pause && s.Reopens != 0 {
				t.Errorf("Stats = %+v", s)
			}
		})
	}
}

// What comes between logrotate's rename and the move to the new file is in the
// old one: logrotate has packed that already and removed it, unless it delays.
func TestLogrotateCompressWithoutDelay(t *testing.T) {
	t.Parallel()
	logrotate := testkit.Program(t, "logrotate")
	for conf, want := range map[string]int{"compress": 200, "compress\ndelaycompress": 300} {
		path := filepath.Join(t.TempDir(), "log")
		text := filepath.Join(t.TempDir(), "conf")
		testkit.OK(t, os.WriteFile(text, fmt.Appendf(nil, "%s {\nrotate 100\ncreate 0640\n%s\n}\n", path, conf), 0o600))
		f := open(t, path, file.Options{NoFollow: true})
		lines := func(from int) {
			for i := range 100 {
				write(t, f, fmt.Sprintf("0 %d\n", from+i))
			}
		}
		lines(0)
		if out, err := exec.Command(logrotate, "-f", "-s", text+".state", text).CombinedOutput(); err != nil {
			t.Fatalf("logrotate: %v\n%s", err, out)
		}
		lines(100)
		testkit.OK(t, f.Reopen())
		lines(200)
		testkit.OK(t, f.Close())
		got := map[string]int{}
		for line := range strings.Lines(logrotated(t, path, glob(t, path+"*"))) {
			got[line]++
		}
		for i := range 300 {
			n := 1
			if want == 200 && i >= 100 && i < 200 {
				n = 0
			}
			if line := fmt.Sprintf("0 %d\n", i); got[line] != n {
				t.Errorf("%q: %q is there %d times, want %d", conf, line, got[line], n)
			}
		}
		if len(got) != want {
			t.Errorf("%q: %d lines, want %d", conf, len(got), want)
		}
		ledger(f).CheckSettled(t, 300, 300)
	}
}

// sorted returns lines "0 I" by I.
func sorted(data string) string {
	lines := slices.Collect(strings.Lines(data))
	slices.SortFunc(lines, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return strings.Join(lines, "")
}

// logrotated returns the contents of path and what logrotate made of it, from
// old to new.
func logrotated(t *testing.T, path string, names []string) string {
	t.Helper()
	age := func(name string) (n int) {
		switch rest := strings.TrimPrefix(name, path); {
		case rest == "":
			return 0
		case rest[0] == '-': // seconds: the larger the newer
			fmt.Sscanf(rest, "-%d", &n)
			return 1<<40 - n
		default:
			fmt.Sscanf(rest, ".%d", &n)
			return n
		}
	}
	slices.SortFunc(names, func(a, b string) int { return age(b) - age(a) })
	var all strings.Builder
	for _, name := range names {
		data := []byte(read(t, name))
		if strings.HasSuffix(name, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(data))
			testkit.OK(t, err)
			if data, err = io.ReadAll(r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		all.Write(data)
	}
	return all.String()
}
