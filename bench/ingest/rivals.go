package ingest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

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

// rivalCommand makes the command of a rival.
func (s *server) rivalCommand(name, program string) (*exec.Cmd, error) {
	if name == Rotel {
		grpc, err := testkit.FreeAddr()
		s.dir = ""
		return exec.Command(program, "start", "--otlp-http-endpoint", s.addr, "--otlp-grpc-endpoint", grpc, "--exporter", "blackhole"), err
	}
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return nil, err
	}
	file, exporter := filepath.Join(s.dir, "config.yaml"), "otlp_http"
	if name == OtelMemory {
		exporter = "nop"
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, otelcolConfig, s.addr, s.dir, name == OtelSynced, exporter), 0o640); err != nil {
		return nil, err
	}
	if name == OtelMemory {
		s.dir = ""
	}
	return exec.Command(program, "--config", "file:"+file), nil
}
