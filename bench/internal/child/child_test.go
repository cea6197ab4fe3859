package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func init() {
	Role("double", func(first int) error {
		out := json.NewEncoder(os.Stdout)
		in := json.NewDecoder(bufio.NewReader(os.Stdin))
		for n := first; ; {
			if err := out.Encode(2 * n); err != nil {
				return err
			}
			if in.Decode(&n) != nil {
				return out.Encode("over")
			}
		}
	})
	Role("fail", func(string) error { return errors.New("it cannot") })
}

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func TestRoles(t *testing.T) {
	p, err := Start("double", 4)
	if err != nil {
		t.Fatal(err)
	}
	var first, second int
	var last string
	if err := errors.Join(p.Receive(&first), p.Ask(21, &second), p.End(&last)); err != nil || first != 8 || second != 42 || last != "over" {
		t.Errorf("%d, %d, %q, %v", first, second, last, err)
	}
	if p.Used() <= 0 && runtime.GOOS != "windows" {
		t.Error("it used no time")
	}
	for _, role := range []string{"fail", "none"} {
		p, err := Start(role, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Receive(&first); err == nil || p.Wait() == nil || p.ProcessState.ExitCode() != Failed {
			t.Errorf("%s: %v, %v", role, err, p.ProcessState)
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestStopEndsChildren: a program's own children do not outlive it.
func TestStopEndsChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks into /proc")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p, err := Program(exec.Command("sh", "-c", "trap '' INT; sleep 1000 & wait"), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for begin := time.Now(); len(all) < 2; time.Sleep(time.Millisecond) {
		if all, err = family(p.Pid()); err != nil || time.Since(begin) > time.Minute {
			t.Fatalf("family %v, %v", all, err)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(all[1]), "stat"))
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d still runs: %s", all[1], state)
		}
	}
	if _, err := Program(exec.Command("sh", "-c", "echo no such option; exit 3"), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("a program that ends: %v", err)
	}
}
