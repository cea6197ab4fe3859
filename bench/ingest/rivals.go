package ingest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rollway/rollway/internal/testkit"
)

// The rivals, each with what it stores by.
const (
	otelFile   = otelcolName + ", file_storage"
	otelSynced = otelcolName + ", file_storage, fsync"
	otelMemory = otelcolName + ", nop exporter"
	rotelName  = rotelVersion + ", blackhole exporter"
)

// rivals are their programs.
var rivals = map[string]rivalProgram{otelFile: otelcol, otelSynced: otelcol, otelMemory: otelcol, rotelName: rotel}

// otelcolConfig has an unbounded queue in front of a destination that does not
// exist: as a journal does, the collector stores, and passes nothing on. It is a
// format for the address, the folder, and whether to sync.
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
	if name == rotelName {
		grpc, err := testkit.FreeAddr()
		s.dir = ""
		return exec.Command(program, "start", "--otlp-http-endpoint", s.addr, "--otlp-grpc-endpoint", grpc, "--exporter", "blackhole"), err
	}
	file, exporter := filepath.Join(s.dir, "config.yaml"), "otlp_http"
	if name == otelMemory {
		exporter = "nop"
	}
	err := errors.Join(os.MkdirAll(s.dir, 0o750), os.WriteFile(file, fmt.Appendf(nil, otelcolConfig, s.addr, s.dir, name == otelSynced, exporter), 0o640))
	if name == otelMemory {
		s.dir = ""
	}
	return exec.Command(program, "--config", "file:"+file), err
}
