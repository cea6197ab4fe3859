package ingest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rollway/rollway/internal/fetch"
)

// errNotFetched says that a rival is not in the cache, and is not to be fetched.
var errNotFetched = errors.New("it is not in the cache, and was not to be fetched")

// A rival's program comes from a registry once, and then from the cache.
type rivalProgram struct {
	file  string // in the folder
	build string // the recipe: another one is another folder
	make  func(dir, recipe string) error
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
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rollway-test", fmt.Sprintf("rival-%08x", crc32.ChecksumIEEE([]byte(p.build))))
	path := filepath.Join(dir, p.file)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if !may {
		return "", errNotFetched
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	return path, fetch.Again(func() error { return p.makeInto(dir) })
}

func (p rivalProgram) makeInto(dir string) error {
	part, err := os.MkdirTemp(filepath.Dir(dir), "part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	if err := p.make(part, p.build); err != nil {
		return err
	}
	return os.Rename(part, dir)
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

func buildOtelcol(dir, recipe string) error {
	if err := os.WriteFile(filepath.Join(dir, "builder.yaml"), []byte(recipe), 0o644); err != nil {
		return err
	}
	if err := runIn(dir, "go", "install", "go.opentelemetry.io/collector/cmd/builder@v0.155.0"); err != nil {
		return err
	}
	return runIn(dir, filepath.Join(dir, "builder"), "--config", "builder.yaml")
}

func installRotel(dir, recipe string) error {
	return runIn(dir, "python3", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--root-user-action=ignore", "--target", dir, recipe)
}

func runIn(dir string, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}
