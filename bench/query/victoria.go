package query

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

const victoriaVersion = "v1.52.2"

// victoria is a VictoriaLogs of one machine, with its defaults except the retention: the lines are
// older than a week. The services are its streams.
type victoria struct {
	*child.Process
	url, folder string
}

// victoriaProgram builds VictoriaLogs, unless that was done before.
func (s Settings) victoriaProgram() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rollway-test", "victoria-logs-"+victoriaVersion)
	program := filepath.Join(dir, "victoria-logs")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if !s.Fetch {
		return "", fmt.Errorf("%w: VictoriaLogs is not in %s", errAbsent, dir)
	}
	return program, fetch.Into(dir, func(part string) *exec.Cmd {
		cmd := exec.Command("go", "install", "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@"+victoriaVersion)
		cmd.Env = append(os.Environ(), "GOBIN="+part, "GOWORK=off")
		return cmd
	})
}

func startVictoria(program, folder string) (engine, error) {
	addr, err := testkit.FreeAddr()
	if err != nil {
		return nil, err
	}
	v := &victoria{url: "http://" + addr, folder: folder}
	v.Process, err = child.Program(exec.Command(program, "-httpListenAddr="+addr, "-storageDataPath="+v.dir(), "-retentionPeriod=100y"), addr)
	return v, err
}

func (v *victoria) version() string      { return victoriaVersion }
func (v *victoria) dir() string          { return filepath.Join(v.folder, "data") }
func (v *victoria) peak() (int64, error) { return peakOf(v.Process) }
func (v *victoria) kill()                { v.Kill() }
func (v *victoria) stop() error          { return v.Stop() }

// load ends when all lines are in files and merges have ended.
func (v *victoria) load(file string) (Cost, int64, error) {
	stop, err := clock(v.Process)
	if err == nil {
		err = post(file, v.url+"/insert/jsonline?_stream_fields=service&_time_field=time&_msg_field=msg")
	}
	for inMemory := 1.0; err == nil && inMemory > 0; time.Sleep(100 * time.Millisecond) {
		var text []byte
		if _, err = answer(http.Get(v.url + "/internal/force_flush")); err == nil {
			text, err = answer(http.Get(v.url + "/metrics"))
			inMemory = metric(text, `vl_storage_rows{type="storage/inmemory"}`)
		}
	}
	if err == nil {
		err = settled(v.Process)
	}
	if err != nil {
		return Cost{}, 0, err
	}
	c, err := stop()
	return c, folderSize(v.dir(), ""), err
}

func (v *victoria) ask(q Query) (answered, error) {
	request, err := http.NewRequest("GET", v.url+"/select/logsql/query?"+url.Values{"query": {q.Victoria}}.Encode(), nil)
	if err != nil {
		return answered{}, err
	}
	return askHTTP(v.Process, request, q)
}
