package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// examined runs doctor on a configuration and returns what it finds, by check.
func examined(t *testing.T, config string) (found map[string][]finding, code int) {
	t.Helper()
	r := cli(t, "", "doctor", "-config", config, "-space", "1MiB", "-time", "100ms", "-o", "json")
	var out struct{ Findings []finding }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
	}
	found = map[string][]finding{}
	for _, f := range out.Findings {
		found[f.Check] = append(found[f.Check], f)
		if (f.Level == levelOK) != (f.Next == "") {
			t.Errorf("what to do is said, or not needed: %+v", f)
		}
	}
	return found, r.code
}

// settled is a configuration by init, on a free port.
func settled(t *testing.T) (dir, config string) {
	t.Helper()
	addr, err := testkit.FreeAddr()
	testkit.OK(t, err)
	host, _, _ := net.SplitHostPort(addr)
	dir, _ = initialize(t, "-listen", addr, "-host", host)
	return dir, filepath.Join(dir, "rollway.yaml")
}

// change replaces a setting in a configuration.
func change(t *testing.T, config, key, value string) {
	t.Helper()
	text, err := os.ReadFile(config)
	testkit.OK(t, err)
	rows := strings.Split(string(text), "\n")
	for i, row := range rows {
		if strings.HasPrefix(strings.TrimSpace(row), key+":") {
			rows[i] = row[:strings.Index(row, key)] + key + ": " + value
		}
	}
	writeFile(t, config, strings.Join(rows, "\n"))
}

// Each check finds what it is for; where nothing is wrong, none does.
func TestDoctorFinds(t *testing.T) {
	always := map[string]bool{"time service": true, "open files": true, "memory": true, "writing": true, "ledger": true} // of the machine
	_, config := settled(t)
	found, _ := examined(t, config)
	for name, list := range found {
		for _, f := range list {
			if f.Level != levelOK && !always[name] && name != "collector" {
				t.Errorf("of a new installation: %+v", f)
			}
		}
	}
	if f := found["certificate"]; len(f) != 1 || strings.Count(f[0].Found, "127.0.0.1") != 1 {
		t.Errorf("the names of the certificate: %+v", f)
	}
	if f := found["collector"]; f[0].Level != levelWarning || !strings.HasPrefix(f[0].Found, "none runs at https://") {
		t.Errorf("no collector runs: %+v", f)
	}
	for _, c := range []struct {
		check, level, text string
		damage             func(t *testing.T, dir, config string)
	}{
		{"configuration", levelProblem, "unknown key lisen", func(t *testing.T, _, config string) { writeFile(t, config, "lisen: x\n") }},
		{"configuration", levelProblem, "tokens.yaml", func(t *testing.T, dir, _ string) { testkit.OK(t, os.Remove(filepath.Join(dir, "tokens.yaml"))) }},
		{"secrets", levelProblem, "can read", func(t *testing.T, dir, _ string) { testkit.OK(t, os.Chmod(filepath.Join(dir, "server.key"), 0o644)) }},
		{"access", levelProblem, "anybody who reaches", func(t *testing.T, _, config string) {
			change(t, config, "listen", "0.0.0.0:0")
			change(t, config, "tokens", `""`)
		}},
		{"access", levelWarning, "on their way", func(t *testing.T, _, config string) {
			change(t, config, "listen", "0.0.0.0:0")
			change(t, config, "cert", `""`)
			change(t, config, "key", `""`)
		}},
		{"access", levelWarning, "0.0.0.0:0 (listen_syslog)", func(t *testing.T, _, config string) {
			change(t, config, "tokens", `""`)
			change(t, config, "hosts", "\"\"\nlisten_syslog: udp://0.0.0.0:0")
		}},
		{"certificate", levelWarning, "expires on", func(t *testing.T, dir, _ string) {
			writeCertificate(t, 1, filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key"))
		}},
		{"folder", levelWarning, "does not exist yet", func(t *testing.T, dir, _ string) { testkit.OK(t, os.Remove(filepath.Join(dir, "data"))) }},
		{"folder", levelProblem, "everybody", func(t *testing.T, dir, _ string) { testkit.OK(t, os.Chmod(filepath.Join(dir, "data"), 0o777)) }},
		{"owner", levelProblem, "is of user 65534", func(t *testing.T, dir, _ string) {
			if os.Geteuid() != 0 {
				testkit.Missing(t, "root")
			}
			testkit.OK(t, os.Mkdir(filepath.Join(dir, "data", "journal"), 0o700))
			writeFile(t, filepath.Join(dir, "data", "journal", "x"), "")
			testkit.OK(t, os.Chown(filepath.Join(dir, "data", "journal", "x"), 65534, 65534))
		}},
		{"retention", levelProblem, "there is room for", func(t *testing.T, _, config string) { change(t, config, "retain_size", "1000000TiB") }},
		{"retention", levelWarning, "until the disk is full", func(t *testing.T, _, config string) { change(t, config, "retain_size", "0") }},
		{"ports", levelProblem, "is in use by", func(t *testing.T, _, config string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			testkit.OK(t, err)
			t.Cleanup(func() { l.Close() })
			change(t, config, "hosts", fmt.Sprintf("\"\"\nlisten_tcp: %q", l.Addr()))
		}},
		{"ports", levelProblem, "listen_syslog) is in use by", func(t *testing.T, _, config string) {
			l, err := net.ListenPacket("udp", "127.0.0.1:0")
			testkit.OK(t, err)
			t.Cleanup(func() { l.Close() })
			change(t, config, "hosts", fmt.Sprintf("\"\"\nlisten_syslog: udp://%s", l.LocalAddr()))
		}},
		{"memory", levelWarning, "this machine has", func(t *testing.T, _, config string) {
			change(t, config, "hosts", "\"\"\nlimits: {query_memory: 1TiB}")
		}},
	} {
		t.Run(c.check+" "+c.text, func(t *testing.T) {
			dir, config := settled(t)
			c.damage(t, dir, config)
			found, code := examined(t, config)
			is := false
			for _, f := range found[c.check] {
				is = is || f.Level == c.level && strings.Contains(f.Found, c.text)
			}
			if !is {
				t.Errorf("%+v", found)
			}
			if c.level == levelProblem && code != exitFailed {
				t.Errorf("exit status %d", code)
			}
		})
	}
}

// A collector that runs is recognised: its port, its counts, the clock of its newest line.
func TestDoctorOfRunning(t *testing.T) {
	dir, config := settled(t)
	addr := ""
	if text, err := os.ReadFile(config); err == nil {
		_, rest, _ := strings.Cut(string(text), `listen: "`)
		addr, _, _ = strings.Cut(rest, `"`)
	}
	d := serveDaemon(t, "-config", config, "-listen", addr)
	token := func(name string) {
		t.Setenv("ROLLWAY_CA", filepath.Join(dir, "ca.pem"))
		t.Setenv("ROLLWAY_TOKEN", strings.TrimSpace(snapshot(t, filepath.Join(dir, "tokens"))[name]))
	}
	want := func(check, level, text string) {
		t.Helper()
		found, _ := examined(t, config)
		for _, f := range found[check] {
			if f.Level == level && strings.Contains(f.Found, text) {
				return
			}
		}
		t.Errorf("want %s: %s %q, found %+v", check, level, text, found[check])
	}
	want("ledger", levelWarning, "a token is needed")
	token("writer")
	cli(t, fmt.Sprintf("{\"msg\":\"x\",\"time\":%q}\n", time.Now().Add(2*time.Hour).Format(time.RFC3339)), "send", "-", "-addr", d.addr).want(t, exitOK)
	token("reader")
	want("collector", levelOK, "ready at https://127.")
	want("ports", levelOK, fmt.Sprintf("(listen) is the collector's: rollway (process %d)", d.cmd.Process.Pid))
	want("ledger", levelOK, "all counts agree, 1 line stored")
	want("clock", levelWarning, "the newest line is 1h59m")
	want("open files", levelOK, "the collector may have")

	// Another configuration is not that of this collector.
	_, other := settled(t)
	change(t, other, "listen", fmt.Sprintf("%q", addr))
	for _, name := range []string{"server.pem", "server.key"} { // which it would have to trust
		text, err := os.ReadFile(filepath.Join(dir, name))
		testkit.OK(t, err)
		writeFile(t, filepath.Join(filepath.Dir(other), name), string(text))
	}
	config = other
	want("collector", levelProblem, "does not use")
	d.end(t)
	config = filepath.Join(dir, "rollway.yaml")
	want("clock", levelWarning, "the newest line is 1h59m") // from the folder
}
