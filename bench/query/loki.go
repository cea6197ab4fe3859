package query

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/fetch"
)

// loki is a Grafana Loki in one process, as its documentation begins with. Service and level are the
// labels; lines are whole. What is not its default are limits that the corpus or an answer breaks.
type loki struct{ process }

const lokiConfig = `
auth_enabled: false
server: {http_listen_address: %[5]s, http_listen_port: %[1]s, grpc_listen_address: 127.0.0.1, grpc_listen_port: 0, log_level: error,
  grpc_server_max_recv_msg_size: 1073741824, grpc_server_max_send_msg_size: 1073741824, http_server_read_timeout: 10m, http_server_write_timeout: 10m}
common:
  instance_addr: 127.0.0.1
  path_prefix: %[2]q
  replication_factor: 1
  ring: {kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: %[3]q, rules_directory: %[2]q}}
schema_config:
  configs: [{from: 2020-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
ingester: {lifecycler: {min_ready_duration: 0s, join_after: 0s}, wal: {dir: %[4]q}}
ingester_client: {grpc_client_config: {max_recv_msg_size: 1073741824, max_send_msg_size: 1073741824}}
frontend_worker: {grpc_client_config: {max_recv_msg_size: 1073741824, max_send_msg_size: 1073741824}}
analytics: {reporting_enabled: false}
limits_config: {reject_old_samples: false, ingestion_rate_mb: 1024, ingestion_burst_size_mb: 1024, per_stream_rate_limit: 1GB, per_stream_rate_limit_burst: 1GB,
  max_entries_limit_per_query: 10000000, max_query_series: 10000000, query_timeout: 10m, split_queries_by_interval: 24h}
`

func startLoki(s Settings, folder string) (engine, error) {
	program, err := fetch.Loki(s.Fetch)
	if err != nil {
		return nil, err
	}
	data, config := filepath.Join(folder, "data"), filepath.Join(folder, "loki.yaml")
	p, err := startServer(fetch.LokiVersion, data, func(addr string) (*exec.Cmd, error) {
		host, port, err := net.SplitHostPort(addr)
		text := fmt.Appendf(nil, lokiConfig, port, data, filepath.Join(data, "chunks"), filepath.Join(folder, "wal"), host)
		return exec.Command(program, "-config.file="+config), errors.Join(err, os.WriteFile(config, text, 0o600))
	})
	if err != nil {
		return nil, err
	}
	l := loki{p}
	return l, l.ready()
}

func (l loki) ready() (err error) {
	for range 600 {
		if _, err = answer(http.Get(l.url + "/ready")); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.Join(err, l.Stop())
}

// A lokiStream is entries with one set of labels: when, in nanoseconds, and the line.
type lokiStream struct {
	Stream map[string]string `json:"stream"`
	Values [][2]string       `json:"values"`
}

// load ends when all chunks are in files.
func (l loki) load(file string) (Cost, int64, error) {
	return l.loadBy(func() error {
		err := l.push(file)
		if err == nil {
			_, err = answer(http.Post(l.url+"/flush", "", nil))
		}
		if err != nil {
			return err
		}
		return settled(l.Process) // it answers before it has flushed
	})
}

func (l loki) push(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in, size := bufio.NewScanner(f), 0
	in.Buffer(nil, 1<<20)
	streams := make(map[[2]string]*lokiStream)
	send := func() error {
		var body struct {
			Streams []*lokiStream `json:"streams"`
		}
		for _, s := range streams {
			body.Streams = append(body.Streams, s)
		}
		text, err := json.Marshal(body)
		if err == nil {
			_, err = answer(http.Post(l.url+"/loki/api/v1/push", "application/json", bytes.NewReader(text)))
		}
		clear(streams)
		size = 0
		return err
	}
	for in.Scan() {
		var line struct {
			Time           time.Time
			Level, Service string
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return err
		}
		labels := [2]string{line.Service, line.Level}
		if streams[labels] == nil {
			streams[labels] = &lokiStream{Stream: map[string]string{"service": line.Service, "level": line.Level}}
		}
		s := streams[labels]
		s.Values = append(s.Values, [2]string{strconv.FormatInt(line.Time.UnixNano(), 10), in.Text()})
		if size += len(in.Bytes()); size >= batchSize {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return errors.Join(in.Err(), send())
}

// ask asks for lines, or for counts at the ends of hours if the question has columns.
func (l loki) ask(q Query) (answered, error) {
	if q.Loki == nil {
		return answered{}, errCannot
	}
	return l.get("/loki/api/v1/query_range?"+q.Loki.Encode(), func(text []byte) ([]string, error) { return lokiRows(text, q.columns) })
}

func lokiRows(text []byte, columns []string) (rows []string, err error) {
	var reply struct {
		Data struct {
			Result []struct {
				Values [][2]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	for _, series := range reply.Data.Result {
		for _, v := range series.Values {
			at, value := strings.Trim(string(v[0]), `"`), strings.Trim(string(v[1]), `"`)
			switch {
			case columns == nil:
				rows = append(rows, strings.TrimSuffix(at, "000"))
			case len(columns) == 1:
				rows = append(rows, value)
			default:
				end, err := strconv.ParseInt(at, 10, 64)
				if err != nil {
					return nil, err
				}
				rows = append(rows, fmt.Sprintf("%d\t%s", end-3600, value))
			}
		}
	}
	return rows, nil
}

// lokiQuery is a question about what is from one time to before another.
func lokiQuery(text string, from, to time.Time, more ...string) url.Values {
	v := url.Values{"query": {text}, "limit": {"9000000"}, "start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}
