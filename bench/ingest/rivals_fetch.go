package ingest

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rollway/rollway/internal/fetch"
)

// A rival's program comes from a registry once, and then from the cache.
type rivalProgram struct {
	file  string // in the folder
	build string // the recipe: another one is another folder
	make  func(dir, recipe string) *exec.Cmd
}

const (
	otelcolName  = "OpenTelemetry Collector 0.155"
	rotelVersion = "Rotel 0.0.1a15"
)

var (
	otelcol = rivalProgram{"out/otelcol", otelcolRecipe, buildOtelcol}
	rotel   = rivalProgram{"rotel/rotel-agent", "rotel==0.0.1a15", installRotel}
)

// path returns where the program is. It fetches a missing one if that is allowed.
func (p rivalProgram) path(may bool) (string, error) {
	dir, err := fetch.Dir(fmt.Sprintf("rival-%08x", crc32.ChecksumIEEE([]byte(p.build))), may, func(part string) *exec.Cmd { return p.make(part, p.build) })
	return filepath.Join(dir, p.file), err
}

// otelcolRecipe builds a collector with only the parts that are measured.
const otelcolRecipe = `dist:
  name: otelcol
  module: rollway/bench/otelcol
  output_path: out
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.155.0
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.155.0
  - gomod: go.opentelemetry.io/collector/exporter/nopexporter v0.155.0
extensions:
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage v0.155.0
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.61.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.61.0
`

func buildOtelcol(dir, recipe string) *exec.Cmd {
	cmd := exec.Command("go", "run", "go.opentelemetry.io/collector/cmd/builder@v0.155.0", "--config", "builder.yaml")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if err := os.WriteFile(filepath.Join(dir, "builder.yaml"), []byte(recipe), 0o644); err != nil {
		cmd.Err = err
	}
	return cmd
}

func installRotel(dir, recipe string) *exec.Cmd { return fetch.Pip(dir, "--no-deps", recipe) }
