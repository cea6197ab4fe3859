package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// A line too long to be checked is counted, and so are its NUL bytes.
func TestVerifyLongLines(t *testing.T) {
	name := t.TempDir() + "/long.log"
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "first")
	if err := f.Truncate(wholeLine + 2000); err != nil { // a hole
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x\nlast"), wholeLine+2000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := cli(t, "", "verify", name)
	r.want(t, exitFailed)
	for _, text := range []string{
		"text, 2 lines, 67.1 MB, the longest 67.1 MB: damaged\n",
		"67,110,858 bytes of value 0, the first in line 2, byte 6\n",
		"1 line is longer than 67.1 MB and not looked into, the first is line 2, byte 6\n",
		"the last line has no end: 4 bytes from byte 67110866 on\n",
	} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is not in:\n%s", text, r.stdout)
		}
	}
	r = cli(t, "", "cat", name)
	r.want(t, exitFailed, "line 2 is left out: it is 67.1 MB long", "the last line has no end")
	if r.stdout != "first\nlast\n" {
		t.Errorf("cat printed %q", r.stdout)
	}
}
