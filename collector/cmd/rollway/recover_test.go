package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/slabfile"
	"github.com/rollway/rollway/internal/testkit"
)

var shopLines = []string{
	`{"msg":"order 1"}` + "\n", `{"msg":"order 2"}` + "\n", `{"msg":"order 3"}` + "\n", `{"msg":"order 4"}` + "\n",
	`{"msg":"order 5"}` + "\n", `{"msg":"order 6"}` + "\n", "order 7 is no JSON\n",
}

// shop is a program with slabs in a file, which the stories of recover run:
//
//	shop SLABS LOG N [J]  accepts all lines, or J, writes N and a half to LOG and kills itself
//	shop SLABS - wait     makes a file shop.ready and waits
//	shop SLABS damage     makes the first slab end within a line
func shop() {
	if err := runShop(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runShop(args []string) error {
	f, err := slabfile.Open(args[0], slabfile.Options{
		Geometry: slabfile.Geometry{SlabSize: 80, SlabCount: 2},
	})
	if err != nil {
		return err
	}
	if args[1] == "damage" {
		mem, committed := f.Slab(0)
		for i := range uint32(*committed) {
			mem[i] = 'x'
		}
		return f.Close()
	}
	if _, err := slabfile.Recover(f, io.Discard, nil); err != nil {
		return err
	}
	fill := func(i int, lines []string) string {
		mem, committed := f.Slab(i)
		f.Begin(i, f.LastSeq()+1)
		text := strings.Join(lines, "")
		*committed = slabfile.Committed(copy(mem, text), len(lines))
		return text
	}
	last := len(shopLines)
	if len(args) > 3 {
		if last, err = strconv.Atoi(args[3]); err != nil {
			return err
		}
	}
	text := fill(0, shopLines[:4])
	fill(1, shopLines[4:last])
	if args[1] == "-" {
		if err := os.WriteFile("shop.ready", []byte("ready\n"), 0o600); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	log, err := file.Open(args[1], file.Options{})
	if err != nil {
		return err
	}
	volume, inode, offset, err := log.Prepare(len(text))
	if err != nil {
		return err
	}
	f.Mark(0, 0, volume, inode, offset)
	written := len(strings.Join(shopLines[:n], ""))
	raw, err := os.OpenFile(args[1], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := raw.WriteString(text[:written+9]); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	self.Kill()
	time.Sleep(time.Hour)
	return nil
}

func TestRecoverExitStatus(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	cli(t, "", "recover").want(t, exitUsage, "FILE is missing")
	cli(t, "", "recover", none).want(t, exitUsage, "-to DEST is missing")
	cli(t, "", "recover", none, none, "-to", "-").want(t, exitUsage, "unexpected argument")
	cli(t, "", "recover", none, "-to", "-", "-retry", "-1s").want(t, exitUsage, "-retry is -1s")
	cli(t, "", "recover", none, "-to", "-").want(t, exitFailed, "slab file")
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return
	}
	var all bytes.Buffer
	slabs := filepath.Join(t.TempDir(), "slabs")
	fillSlabs(t, slabs, &all)
	cli(t, "", "recover", slabs, "-to", slabs).want(t, exitUsage, "the same file")
	cli(t, "", "recover", slabs, "-dry-run").want(t, exitOK, "200 batches")
	r := cli(t, "", "recover", slabs, "-to", "-")
	if r.want(t, exitOK); r.stdout != all.String() {
		t.Errorf("%d bytes on standard output, want %d", len(r.stdout), all.Len())
	}
	cli(t, "", "recover", slabs, "-to", "-").want(t, exitOK, "nothing to recover")
}

// recover that is itself killed, again and again, delivers each line once.
func TestRecoverKilled(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		testkit.Missing(t, "linux or darwin")
	}
	dir := t.TempDir()
	slabs, log := filepath.Join(dir, "slabs"), filepath.Join(dir, "log")
	var all bytes.Buffer
	killed := 0
	few := testkit.RaceRounds(t, 3, 8)
	for round := 0; round < few || killed == 0 && round < 50; round++ { // a kill may come too late on a busy machine
		fillSlabs(t, slabs, &all)
		for !recoverKilled(t, slabs, log) {
			killed++
		}
	}
	got, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, all.Bytes()) {
		t.Errorf("%d bytes after %d kills, want %d", len(got), killed, all.Len())
	}
	if killed == 0 {
		t.Error("no kill came in time")
	}
	t.Logf("killed %d times", killed)
}

// fillSlabs leaves slabs as a killed process does, and adds their lines to all.
func fillSlabs(t *testing.T, path string, all *bytes.Buffer) {
	t.Helper()
	const count, size = 200, 16 << 10
	f, err := slabfile.Open(path, slabfile.Options{
		Geometry: slabfile.Geometry{SlabSize: size, SlabCount: count, LineLimit: 3 * size},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		seq := f.LastSeq() + 1
		if i%50 == 7 {
			line := fmt.Appendf(nil, "%d.%d %s\n", seq, i, strings.Repeat("long ", 5000))
			if err := f.BeginLine(i, seq, line); err != nil {
				t.Fatal(err)
			}
			all.Write(line)
			continue
		}
		mem, committed := f.Slab(i)
		f.Begin(i, seq)
		begin, n := all.Len(), 0
		for ; all.Len()-begin < size-100; n++ {
			fmt.Fprintf(all, "%d.%d %s\n", seq, n, strings.Repeat("x", n%70))
		}
		*committed = slabfile.Committed(copy(mem, all.Bytes()[begin:]), n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// recoverKilled runs recover, kills it once it has written something, and
// reports whether it was done before that.
func recoverKilled(t *testing.T, slabs, log string) (done bool) {
	t.Helper()
	cmd := exec.Command("rollway", "recover", slabs, "-to", log)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := sizeOf(log)
	start(t, cmd)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for sizeOf(log) == begin {
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Microsecond):
			}
		}
		cmd.Process.Kill()
	}()
	err := cmd.Wait()
	close(ended)
	<-watched
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return err == nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
