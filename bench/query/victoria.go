package query

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/fetch"
)

const victoriaVersion = "v1.52.2"

// victoria is a VictoriaLogs of one machine, with its defaults except the retention: the lines are
// older than a week. The services are its streams.
type victoria struct{ process }

func startVictoria(s Settings, folder string) (engine, error) {
	built, err := fetch.Dir("victoria-logs-"+victoriaVersion, s.Fetch, func(part string) *exec.Cmd {
		cmd := exec.Command("go", "install", "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@"+victoriaVersion)
		cmd.Env = append(os.Environ(), "GOBIN="+part, "GOWORK=off")
		return cmd
	})
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	p, err := startServer(victoriaVersion, data, func(addr string) (*exec.Cmd, error) {
		return exec.Command(filepath.Join(built, "victoria-logs"), "-httpListenAddr="+addr, "-storageDataPath="+data, "-retentionPeriod=100y"), nil
	})
	return victoria{p}, err
}

// load ends when all lines are in files and merges have ended.
func (v victoria) load(file string) (Cost, int64, error) {
	return v.loadBy(func() error {
		err := post(file, v.url+"/insert/jsonline?_stream_fields=service&_time_field=time&_msg_field=msg")
		for inMemory := 1.0; err == nil && inMemory > 0; time.Sleep(100 * time.Millisecond) {
			var text []byte
			if _, err = answer(http.Get(v.url + "/internal/force_flush")); err == nil {
				text, err = answer(http.Get(v.url + "/metrics"))
				inMemory = metric(text, `vl_storage_rows{type="storage/inmemory"}`)
			}
		}
		if err != nil {
			return err
		}
		return settled(v.Process)
	})
}

func (v victoria) ask(q Query) (answered, error) {
	return v.get("/select/logsql/query?"+url.Values{"query": {q.Victoria}}.Encode(), func(text []byte) ([]string, error) { return ownRows(text, q.columns) })
}
