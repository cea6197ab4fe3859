package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rollway/rollway/collector/config"
)

func TestMain(m *testing.M) {
	// A process under the race detector sleeps for a second when it ends, and
	// these tests start dozens.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" "+quickExit))
	// The test program is also the rollway that tests start as a process.
	testscript.Main(m, programs)
}

// programs are what the test program can be run as.
var programs = map[string]func(){"rollway": main, "shop": shop}

const quickExit = "atexit_sleep_ms=10"

// A result is what one command line did.
type result struct {
	code           int
	stdout, stderr string
}

// cli runs one command line in this process.
func cli(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	dir := t.TempDir()
	open := func(name, content string) *os.File {
		path := filepath.Join(dir, name)
		writeFile(t, path, content)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	c := &call{stdin: open("in", stdin), stdout: newStream(open("out", "")), stderr: newStream(open("err", ""))}
	r := result{code: run(args, c)}
	read := func(f *os.File) string {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	r.stdout, r.stderr = read(c.stdout.file), read(c.stderr.file)
	return r
}

// want checks the exit status and that stderr holds each of the texts.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	var faults []string
	if r.code != code {
		faults = append(faults, fmt.Sprintf("exit status %d, want %d", r.code, code))
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			faults = append(faults, fmt.Sprintf("stderr lacks %q", text))
		}
	}
	if len(faults) > 0 {
		t.Fatalf("%s\nstdout:\n%.2000s\nstderr:\n%.2000s", strings.Join(faults, "\n"), r.stdout, r.stderr)
	}
}

func TestUsage(t *testing.T) {
	for _, cmd := range commands() {
		for line := range strings.Lines(cmd.help) {
			if !strings.HasPrefix(line, "  ") && utf8.RuneCountInString(line) > 81 { // with its end; examples are as long as they are
				t.Errorf("help of %s: wider than 80 columns: %s", cmd.name, line)
			}
		}
		for _, args := range [][]string{{cmd.name, "-h"}, {"help", cmd.name}} {
			r := cli(t, "", args...)
			if r.code != exitOK || r.stderr != "" || !strings.HasPrefix(r.stdout, "Usage: rollway "+cmd.name) ||
				!strings.Contains(r.stdout, "Example") || !strings.Contains(r.stdout, "  rollway "+cmd.name) {
				t.Errorf("rollway %s: status %d, stderr %q, stdout\n%s", strings.Join(args, " "), r.code, r.stderr, r.stdout)
			}
		}
		r := cli(t, "", cmd.name, "-no-such-flag")
		if r.code != exitUsage || !strings.Contains(r.stderr, "no-such-flag") || !strings.Contains(r.stderr, "Run 'rollway "+cmd.name+" -h'") {
			t.Errorf("rollway %s -no-such-flag: status %d, stderr %q", cmd.name, r.code, r.stderr)
		}
	}
	cli(t, "").want(t, exitUsage, "Usage: rollway COMMAND")
	cli(t, "", "qeury").want(t, exitUsage, `unknown command "qeury", did you mean "query"?`)
	cli(t, "", "frobnicate").want(t, exitUsage, "unknown command \"frobnicate\"\n")
	cli(t, "", "help", "sned").want(t, exitUsage, `did you mean "send"?`)
	if r := cli(t, "", "-h"); r.code != exitOK || !strings.Contains(r.stdout, "Exit status") {
		t.Errorf("rollway -h: %+v", r)
	}
	if r := cli(t, "", "--version"); r.code != exitOK || !strings.HasPrefix(r.stdout, "rollway ") {
		t.Errorf("rollway --version: %+v", r)
	}
}

func TestParseFlags(t *testing.T) {
	for _, tt := range []struct{ args, positional, addr string }{
		{"a b", "a b", ""},
		{"-addr X a b", "a b", "X"},
		{"a -addr X b", "a b", "X"},
		{"a b -addr=X", "a b", "X"},
		{"-addr X -- -y -addr Z", "-y -addr Z", "X"},
		{"a -- b -addr Z", "a b -addr Z", ""},
		{"a - b", "a - b", ""},
	} {
		flags := flag.NewFlagSet("send", flag.ContinueOnError)
		addr := addrFlag(flags)
		got, err := parseFlags(flags, strings.Fields(tt.args))
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
		}
		if strings.Join(got, " ") != tt.positional || *addr != tt.addr {
			t.Errorf("%s: got %q and -addr %s, want %q and %s", tt.args, got, *addr, tt.positional, tt.addr)
		}
	}
}

// Each setting is in the help of serve, in its section.
func TestSettingsAreInHelp(t *testing.T) {
	r := cli(t, "", "serve", "-h")
	r.want(t, 0)
	sections := map[string]string{}
	_, list, _ := strings.Cut(r.stdout, "Settings of the file:\n")
	for row := range strings.Lines(list) {
		if section, names, found := strings.Cut(row, ": "); found {
			sections[strings.TrimSpace(section)] = names
		} else if sections[""] == "" {
			sections[""] = row
		}
	}
	for _, key := range config.Keys() {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			section, name = "", key
		}
		if !slices.Contains(strings.Fields(sections[section]), name) {
			t.Errorf("serve -h does not name %s", key)
		}
	}
}
