package receivertest

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// No registry that CI reaches has these programs. Without them tests replay what
// they once sent.
var (
	fluentd   = flag.String("fluentd", "", "the program of Fluentd, to send events to the receivers and with -update record what it sends")
	fluentBit = flag.String("fluentbit", "", "the program of Fluent Bit, likewise")
)

// AgentEvents is how many events an agent sends.
const AgentEvents = 3

const agentEvents = `{"time":"` + Day + `0:00.123456789Z","level":"warn","message":"one","n":7,"ratio":0.5,"tags":["a",null,true],"nested":{"k":"v"}}
{"time":"` + Day + `0:01.000000005Z","level":"error","message":"two \"é\"","big":9007199254740993}
{"time":"` + Day + `0:02.5Z","log":"no level\n"}
`

// Fluentd has Fluentd read some events from a file and send them as match, a part of
// its configuration, says, and stops it when sent returns. It returns false if the
// program is not there: -fluentd.
func Fluentd(t testing.TB, match string, sent func()) bool {
	t.Helper()
	return agent(t, *fluentd, "--no-supervisor", `
<source>
  @type tail
  path EVENTS
  pos_file EVENTS.pos
  read_from_head true
  tag app.log
  <parse>
    @type json
    time_type string
    time_format %iso8601
  </parse>
</source>
<match app.**>
  heartbeat_type none
  <buffer>
    flush_mode immediate
  </buffer>
`+match+`
</match>
`, sent)
}

// FluentBit is Fluentd for Fluent Bit and -fluentbit; output is a section of its
// configuration.
func FluentBit(t testing.TB, output string, sent func()) bool {
	t.Helper()
	return agent(t, *fluentBit, "-q", `
[SERVICE]
    flush 1
    parsers_file PARSERS
[INPUT]
    name tail
    path EVENTS
    tag app.log
    parser events
    read_from_head on
[OUTPUT]
    match *
`+output+`
`, sent)
}

// Agents has an agent, such as Fluentd or FluentBit, send AgentEvents over HTTP by each of
// configs, in which HOST and PORT are the collector's, as Client has a client do
// it. Where it is not, what it once sent is sent again.
func Agents(t *testing.T, agent func(t testing.TB, config string, sent func()) bool, configs map[string]string) {
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			recorded(t, name, func(s *Server, url string) bool {
				host, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
				return agent(t, strings.NewReplacer("HOST", host, "PORT", port).Replace(config), func() { s.Await(t, AgentEvents) })
			})
		})
	}
}

const parsers = `[PARSER]
    name events
    format json
    time_key time
    time_format %Y-%m-%dT%H:%M:%S.%LZ
`

// agent runs a program with a configuration in which EVENTS and PARSERS are
// files.
func agent(t testing.TB, program, argument, config string, sent func()) bool {
	t.Helper()
	if program == "" {
		return false
	}
	dir := t.TempDir()
	events, conf := filepath.Join(dir, "events.json"), filepath.Join(dir, "agent.conf")
	config = strings.NewReplacer("EVENTS", events, "PARSERS", filepath.Join(dir, "parsers.conf")).Replace(config)
	for name, text := range map[string]string{events: agentEvents, conf: config, filepath.Join(dir, "parsers.conf"): parsers} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, argument, "-c", conf)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		t.Logf("%s: %v\n%s", program, err, out.String())
	}()
	sent()
	return true
}
