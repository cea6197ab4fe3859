package ingest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// The rivals, each with what it stores by.
var (
	OtelFile   = otelcol.name + ", file_storage"
	OtelSynced = otelcol.name + ", file_storage, fsync"
	OtelMemory = otelcol.name + ", nop exporter"
	Rotel      = rotel.name + ", blackhole exporter"
)

// promises says what each server's answer promises.
var promises = map[string]string{
	Buffered:   "survives the process",
	Synced:     "survives a power cut",
	OtelFile:   "survives the process",
	OtelSynced: "survives a power cut",
	OtelMemory: "nothing",
	Rotel:      "nothing",
}

// Rivals lists the servers that take the same OTLP, ours among them.
func Rivals() []string { return []string{Buffered, OtelFile, OtelMemory, Rotel, Synced, OtelSynced} }

// rivalOf returns whose program a server is; false: it is ours.
func rivalOf(name string) (rivalProgram, bool) {
	switch name {
	case OtelFile, OtelSynced, OtelMemory:
		return otelcol, true
	case Rotel:
		return rotel, true
	}
	return rivalProgram{}, false
}

// otelcolConfig has a queue without an end in front of a destination that is not
// there: as a journal, the collector stores, and passes nothing on. What it is
// given has the address, the folder, and whether to sync.
const otelcolConfig = `receivers:
  otlp:
    protocols:
      http:
        endpoint: %s
exporters:
  nop:
  otlp_http:
    endpoint: http://127.0.0.1:1
    timeout: 1s
    sending_queue:
      storage: file_storage
      queue_size: 1000000000
      num_consumers: 1
    retry_on_failure:
      initial_interval: 1h
      max_interval: 1h
      max_elapsed_time: 0
extensions:
  file_storage:
    directory: %s
    timeout: 10s
    fsync: %t
service:
  extensions: [file_storage]
  telemetry:
    logs:
      level: fatal
    metrics:
      level: none
  pipelines:
    logs:
      receivers: [otlp]
      exporters: [%s]
`

// startRival starts a rival whose data is in dir.
func startRival(name, program, dir string) (*server, error) {
	addr, err := testkit.FreeAddr()
	if err != nil {
		return nil, err
	}
	s := &server{addr: addr, dir: dir, want: 200, rival: true}
	if name == Rotel {
		grpc, err := testkit.FreeAddr()
		if err != nil {
			return nil, err
		}
		s.dir = ""
		s.cmd = exec.Command(program, "start", "--otlp-http-endpoint", addr, "--otlp-grpc-endpoint", grpc, "--exporter", "blackhole")
	} else {
		exporter := "otlp_http"
		if name == OtelMemory {
			exporter, s.dir = "nop", ""
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, otelcolConfig, addr, dir, name == OtelSynced, exporter), 0o640); err != nil {
			return nil, err
		}
		s.cmd = exec.Command(program, "--config", "file:"+file)
	}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	return s, s.awaitAddr()
}

// awaitAddr waits until the server listens.
func (s *server) awaitAddr() error {
	for end := time.Now().Add(startWithin); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			s.stop()
			return fmt.Errorf("the server does not listen: %w", err)
		}
	}
}
