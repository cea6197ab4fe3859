package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	shown "github.com/rollway/rollway/internal/page"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// A runbook is a section of docs/RUNBOOKS.md, whose commands are run against a collector.
type runbook struct {
	section string
	dir     string // for files
	d       *daemon
	env     []string
}

const (
	runbooksPage = "RUNBOOKS.md"
	preludeOf    = "Before you begin"
	opsToken     = "ops-0123456789abcdef"
	writerToken  = "writer-0123456789abcdef"
)

// runbooks provoke what a section is about. They return what people do elsewhere between its
// commands and those under Over, or nil.
var runbooks = map[string]func(t *testing.T, b *runbook) (mend func()){
	"Disk full":    fullDisk, // TestFullDiskRunbook has the disk
	"Sink down":    sinkDown,
	"Token leaked": tokenLeaked,
	"Clock wrong":  clockWrong,
	"File damaged": fileDamaged,
}

func runbookSteps(t *testing.T) (steps []shown.Step, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", runbooksPage))
	if err == nil {
		steps, _, err = shown.Parse(runbooksPage, string(b))
	}
	if err != nil {
		t.Fatal(err)
	}
	return steps, string(b)
}

// Each fault of docs/RUNBOOKS.md is provoked, and over once the commands of the page were run.
func TestRunbooksAreFollowed(t *testing.T) {
	steps, _ := runbookSteps(t)
	for _, st := range steps {
		if runbooks[st.Section] == nil && st.Section != preludeOf || st.Skip != "" || st.Background {
			t.Errorf("%s:%d: nothing runs %s", runbooksPage, st.Line, st.Command)
		}
	}
	for _, section := range slices.Sorted(maps.Keys(runbooks)) {
		if section != "Disk full" {
			t.Run(section, func(t *testing.T) { followRunbook(t, section, t.TempDir()) })
		}
	}
}

func TestFullDiskRunbook(t *testing.T) {
	if dir := smalldisk.Mount(t, "size=12m"); dir != "" {
		followRunbook(t, "Disk full", dir)
	}
}

func followRunbook(t *testing.T, section, dir string) {
	for _, program := range []string{"bash", "curl", "openssl"} {
		testkit.Program(t, program)
	}
	b := &runbook{section: section, dir: dir}
	mend := runbooks[section](t, b)
	b.follow(t, "", "See", "Do")
	if mend != nil {
		mend()
	}
	b.follow(t, "Over")
	b.logged(t)
}

func (b *runbook) path(name string) string { return filepath.Join(b.dir, name) }

// serve starts a collector with tokens and more settings.
func (b *runbook) serve(t *testing.T, config string) {
	t.Helper()
	writeFile(t, b.path("tokens.yaml"), fmt.Sprintf("- {name: ops, secret: %s, may: [read, operate]}\n- {name: writer, secret: %s, may: write}\n- {name: shop, secret_sha256: \"%x\"}\n",
		opsToken, writerToken, sha256.Sum256([]byte("shop-0123456789abcdef"))))
	writeFile(t, b.path("rollway.yaml"), fmt.Sprintf("access: {tokens: %q}\n%s", b.path("tokens.yaml"), config))
	b.d = serveDaemon(t, "-config", b.path("rollway.yaml"), "-data", b.path("data"))
	t.Setenv("ROLLWAY_TOKEN", opsToken)
	b.env = append(os.Environ(), "DATA="+b.path("data"), "CONFIG="+b.path("rollway.yaml"), "TOKENS="+b.path("tokens.yaml"),
		"ADDR="+b.d.addr, "PID="+strconv.Itoa(b.d.cmd.Process.Pid), "BACKUP="+b.path("backup.tar"), "WRITER="+writerToken, "TZ=UTC")
}

// send posts lines with a token.
func (b *runbook) send(t *testing.T, token, body string) int {
	t.Helper()
	code, _ := postAs(http.DefaultClient, b.d, token, "", body)
	return code
}

// follow runs the commands of parts of the section in one shell.
func (b *runbook) follow(t *testing.T, parts ...string) {
	t.Helper()
	all, _ := runbookSteps(t)
	var steps []shown.Step
	for _, st := range all {
		if st.Section == preludeOf || st.Section == b.section && slices.Contains(parts, st.Part) {
			steps = append(steps, st)
		}
	}
	out := t.TempDir()
	var script strings.Builder
	for i, st := range steps {
		fmt.Fprintf(&script, "{ %s\n} </dev/null >%s/%d 2>&1; echo $? >%[2]s/%[3]d.status\n", st.Command, out, i)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	shell.Env, shell.Dir, shell.Stdin = b.env, b.dir, strings.NewReader(script.String())
	if text, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", b.section, err, text)
	}
	for i, st := range steps {
		got, _ := os.ReadFile(filepath.Join(out, strconv.Itoa(i)))
		status, _ := os.ReadFile(filepath.Join(out, strconv.Itoa(i)+".status"))
		if string(status) != "0\n" || st.Output != "" && !shown.Matches(st.Output, string(got), true) {
			t.Fatalf("%s:%d: %s\nstatus %s%s; it printed:\n%s", runbooksPage, st.Line, st.Command, status, shown.Difference(st.Output, string(got)), got)
		}
	}
}

// logged checks that the log has what the section says of it.
func (b *runbook) logged(t *testing.T) {
	t.Helper()
	_, text := runbookSteps(t)
	_, text, _ = strings.Cut(text, "\n## "+b.section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range regexp.MustCompile("[Ll]og says\\s+`([^`]+)`").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(b.d.stderr.String(), m[1]) {
			t.Errorf("%s: the log does not say %q", b.section, m[1])
		}
	}
}

func fullDisk(t *testing.T, b *runbook) func() {
	testkit.OK(t, os.WriteFile(b.path("reserve"), make([]byte, 6<<20), 0o600))
	b.serve(t, "")
	body := fmt.Sprintf(`{"msg":"x","filler":%q}`, strings.Repeat("x", 100<<10))
	stored := 0
	for ; b.send(t, "writer", body) == 200; stored++ {
		if stored > 1000 {
			t.Fatal("the disk does not fill")
		}
	}
	return nil
}

func sinkDown(t *testing.T, b *runbook) func() {
	addr := freeAddr(t)
	b.serve(t, fmt.Sprintf("kafka: {brokers: %q, topic: logs}\n", addr))
	if code := b.send(t, "writer", `{"msg":"x"}`); code != 200 {
		t.Fatal(code)
	}
	waitFor(t, "a try", func() bool { return strings.Contains(b.d.stderr.String(), "unable to open connection") })
	return func() {
		_, port, err := net.SplitHostPort(addr)
		testkit.OK(t, err)
		n, err := strconv.Atoi(port)
		testkit.OK(t, err)
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n), kfake.SeedTopics(1, "logs"))
		testkit.OK(t, err)
		t.Cleanup(cluster.Close)
	}
}

func tokenLeaked(t *testing.T, b *runbook) func() {
	b.serve(t, "")
	b.env = append(b.env, "LEAKED=shop-0123456789abcdef", "NAME=shop")
	if code := b.send(t, "shop", `{"msg":"x"}`); code != 200 {
		t.Fatal(code)
	}
	return nil
}

func clockWrong(t *testing.T, b *runbook) func() {
	b.serve(t, "")
	line := fmt.Sprintf(`{"msg":"x","service":"shop","time":%q}`, time.Now().Add(3*time.Hour).Format(time.RFC3339))
	if code := b.send(t, "writer", line); code != 200 {
		t.Fatal(code)
	}
	return nil
}

func fileDamaged(t *testing.T, b *runbook) func() {
	const config = "journal: {segment_size: 1MiB, compression: none, scrub: 1m}\n"
	b.serve(t, config)
	body := strings.Repeat(fmt.Sprintf(`{"msg":"x","filler":%q}`+"\n", strings.Repeat("x", 1000)), 500)
	var sealed []string
	waitFor(t, "a sealed segment", func() bool {
		if code := b.send(t, "writer", body); code != 200 {
			t.Fatal(code)
		}
		sealed = glob(b.path("data/journal"), "*.seg")
		return len(sealed) > 0
	})
	cli(t, "", "backup", "-to", b.path("backup.tar"), "-addr", b.d.addr).want(t, 0)
	b.d.end(t)
	f, err := os.OpenFile(sealed[0], os.O_WRONLY, 0)
	testkit.OK(t, err)
	_, err = f.WriteAt([]byte("X"), 5000)
	testkit.OK(t, err)
	testkit.OK(t, f.Close())
	b.serve(t, config) // the first segment is read again at once
	waitFor(t, "the damage to be found", func() bool { return strings.Contains(b.d.stderr.String(), "damaged") })
	return nil
}
