//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// objects returns the JSON values in text, one after another.
func objects(t *testing.T, name, text string) (all []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: not JSON: %v\n%s", name, err, text)
		}
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, v := range list {
			object, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%s: %v is not an object\n%s", name, v, text)
			}
			all = append(all, object)
		}
	}
}

// Every command prints JSON with -o json, on both streams.
func TestEveryCommandPrintsJSON(t *testing.T) {
	dir := t.TempDir()
	me, err := user.Current()
	testkit.OK(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, path("a.log"), "{\"msg\":\"one\"}\nsecond\n")
	writeFile(t, path("bad.log"), "a\n\x00\x00\x00b\n")
	writeFile(t, path("rollway.yaml"), "data: "+path("data")+"\n")
	writeFile(t, path("wrong.yaml"), "limits: {max_bdy: 1MiB}\n")
	d := serveDaemon(t, "-data", path("data"))
	cli(t, "{\"time\":\"2026-05-28T12:40:00Z\",\"level\":\"info\",\"msg\":\"hello\"}\n", "send", "-addr", d.addr).want(t, 0)
	addr := " -addr " + d.addr
	slabs := path("shop.slabs")
	_ = exec.Command("shop", slabs, path("shop.log"), "0").Run() // it kills itself
	// What is run, and a field of what it prints.
	runs := map[string]struct{ args, field string }{
		"check":      {"-config " + path("rollway.yaml"), "settings"},
		"send":       {path("a.log") + " -state " + path("state") + addr, "accepted"},
		"replay":     {addr, "stored"},
		"tail":       {addr, "msg"},
		"query":      {"hello" + addr, "msg"},
		"export":     {"-to " + path("export") + addr, "sha256"},
		"explain":    {addr, "events"},
		"clients":    {addr, "receiver"},
		"cat":        {path("a.log") + " -where msg=one", "msg"},
		"verify":     {path("bad.log") + " " + path("none.log") + " " + path("data"), "state"},
		"reconcile":  {path("data") + addr, "agrees"},
		"recover":    {slabs + " -dry-run", "batches"},
		"init":       {"-dir " + path("etc") + " -data " + path("etc-data") + " -user " + me.Username, "written"},
		"doctor":     {dir + " -space 1MiB -time 1s", "advice"},
		"backup":     {"-to " + path("backup") + addr, "path"},
		"restore":    {path("backup") + " -data " + path("restored"), "path"},
		"plan":       {"-rate 1000 -line 256 -write-latency 1ms", "slab_count"},
		"demo":       {"-for 100ms -rate 100", "log_call_p99_ns"},
		"completion": {"bash", "script"},
		"version":    {"", "go"},
		"help":       {"query", "flags"},
	}
	for _, cmd := range commands() {
		// Every error is an object with these fields.
		r := cli(t, "", cmd.name, "-no-such-flag", "-o", "json")
		failure := objects(t, cmd.name, r.stderr)
		if r.code != exitUsage || len(failure) != 1 || failure[0]["command"] != cmd.name || failure[0]["exit"] != 2.0 || failure[0]["error"] == "" {
			t.Errorf("rollway %s -no-such-flag -o json: status %d, stderr %s", cmd.name, r.code, r.stderr)
		}
		if cmd == serveCommand || cmd == relayCommand {
			continue // below
		}
		run, ok := runs[cmd.name]
		if !ok {
			t.Errorf("this test does not run rollway %s -o json", cmd.name)
			continue
		}
		r = cli(t, "{\"msg\":\"paid\"}\n", append([]string{cmd.name, "-o", "json"}, strings.Fields(run.args)...)...)
		out := objects(t, cmd.name, r.stdout)
		objects(t, cmd.name, r.stderr)
		if len(out) == 0 || !strings.Contains(r.stdout, `"`+run.field+`"`) || r.code == exitUsage {
			t.Errorf("rollway %s -o json %s: status %d, without %q\n%s\n%s", cmd.name, run.args, r.code, run.field, r.stdout, r.stderr)
		}
	}
	for _, args := range []string{"sevre -o json", "help sevre -o json", "check -config " + path("wrong.yaml") + " -o json", "cat -o json none.log", "query -o json" + " -addr " + closedAddr(t), "verify -o json none.log"} {
		r := cli(t, "", strings.Fields(args)...)
		if failure := objects(t, args, r.stderr); r.code == exitOK || len(failure) == 0 {
			t.Errorf("rollway %s: status %d, stderr %s", args, r.code, r.stderr)
		}
	}
	r := cli(t, "", "check", "-o", "json", path("wrong.yaml"))
	if e, _ := objects(t, "check", r.stderr)[0]["errors"].([]any); len(e) != 1 || e[0].(map[string]any)["line"] != 1.0 {
		t.Errorf("check -o json: %s", r.stderr)
	}
	d.end(t)
}

// Services print an object for what happens.
func TestServicesPrintJSON(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{
		"serve -o json -listen 127.0.0.1:0 -listen-grpc= -data " + filepath.Join(dir, "data"),
		"relay -o json -listen tcp://127.0.0.1:0 -to tcp://127.0.0.1:1 -metrics-listen 127.0.0.1:0",
	} {
		cmd := exec.Command("rollway", strings.Fields(args)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		start(t, cmd)
		read := json.NewDecoder(out)
		for _, want := range []string{"running", "stopping", "stopped"} {
			var e map[string]any
			if err := read.Decode(&e); err != nil || e["event"] != want {
				t.Errorf("rollway %s: %v, %v, want %s", args, e, err, want)
			}
			if want == "running" {
				sendSignal(t, cmd, syscall.SIGTERM)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("rollway %s: %v\n%s", args, err, stderr.String())
		}
		objects(t, args, stderr.String())
	}
}
