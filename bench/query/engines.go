package query

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

// Cost is what a question or an ingest took: seconds of wall and of CPU time, of the
// engine and its client.
type Cost struct {
	Wall float64 `json:"wall_s"`
	CPU  float64 `json:"cpu_s"`
}

// An engine answers questions about the lines of a file.
type engine interface {
	version() string
	// load stores the lines of a file of NDJSON, and returns how many bytes they take.
	load(file string) (Cost, int64, error)
	// ask returns an answer, or errCannot.
	ask(q Query) (answered, error)
	// peak is the most resident memory in bytes since the last call.
	peak() (int64, error)
	dir() string // of the stored files
	kill()       // ends what it does; another goroutine calls it
	stop() error
}

// answered is an answer.
type answered struct {
	Cost
	rows     []string // comparable between engines
	estimate string   // columns that have estimates, and how good these are
}

var errCannot = errors.New("the engine cannot answer this question")

// A process is an engine in a process of its own, and where it keeps its files.
type process struct {
	*child.Process
	number string // version
	data   string // folder
	url    string // of a server
}

// startServer starts a server. command gets the address at which to listen.
func startServer(number, data string, command func(addr string) (*exec.Cmd, error)) (process, error) {
	p := process{number: number, data: data}
	addr, err := testkit.FreeAddr()
	if err != nil {
		return p, err
	}
	cmd, err := command(addr)
	if err != nil {
		return p, err
	}
	p.url = "http://" + addr
	p.Process, err = child.Program(cmd, addr)
	return p, err
}

func (p process) version() string { return p.number }
func (p process) dir() string     { return p.data }
func (p process) kill()           { p.Kill() }
func (p process) stop() error     { return p.Stop() }

func (p process) peak() (int64, error) {
	peak, err := child.Peak(p.Pid())
	return peak, errors.Join(err, child.ResetPeak(p.Pid()))
}

// loadBy is load for a server that has what do sends it in its files when do returns.
func (p process) loadBy(do func() error) (Cost, int64, error) {
	c, err := p.timed(do)
	return c, folderSize(p.data, ""), err
}

// timed measures the server and its client while do runs.
func (p process) timed(do func() error) (c Cost, err error) {
	before, err := p.CPU()
	if err != nil {
		return c, err
	}
	begin, client := time.Now(), measure.ProcessCPU()
	if err := do(); err != nil {
		return c, err
	}
	wall, us := time.Since(begin), measure.ProcessCPU()-client
	now, err := p.CPU()
	return Cost{wall.Seconds(), (now - before + us).Seconds()}, err
}

// own is `rollway serve`.
type own struct{ process }

// startOwn starts a collector. The last segment, which takes lines, is not packed: a small
// corpus gets smaller segments than the default.
func startOwn(s Settings, folder string) (engine, error) {
	program, err := child.BuildRollway(folder)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	p, err := startServer("this commit", data, func(addr string) (*exec.Cmd, error) {
		config := filepath.Join(folder, "rollway.yaml")
		return exec.Command(program, "serve", "-config", config), os.WriteFile(config, fmt.Appendf(nil, ownConfig, addr, data, min(128<<20, max(2<<20, s.Size/32))), 0o600)
	})
	return own{p}, err
}

// ownConfig is a format for the address, the folder, and the size of segments.
const ownConfig = `listen: %s
listen_grpc: ""
data: %s
journal:
  segment_size: %d
timeouts: {query: 10m, query_cpu: 10m}
`

// batchSize is about how long a request of the ingest is.
const batchSize = 1 << 20

func (o own) load(file string) (Cost, int64, error) {
	return o.loadBy(func() error {
		if err := post(file, o.url+"/api/logs"); err != nil {
			return err
		}
		return o.packed()
	})
}

// post sends the lines of a file in requests of about batchSize.
func post(file, url string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, batchSize)
	body := make([]byte, 0, 2*batchSize)
	for end := false; !end; {
		line, err := in.ReadSlice('\n')
		if end = err == io.EOF; err != nil && !end {
			return err
		}
		body = append(body, line...)
		if len(body) < batchSize && !end || len(body) == 0 {
			continue
		}
		if _, err := answer(http.Post(url, "application/x-ndjson", bytes.NewReader(body))); err != nil {
			return err
		}
		body = body[:0]
	}
	return nil
}

// settled waits until a server has used next to no CPU time for a second: what it does by itself has ended.
func settled(server *child.Process) error {
	const pause, idle = 100 * time.Millisecond, 5 * time.Millisecond
	for calm := 0; calm < 10; calm++ {
		before, err := server.CPU()
		time.Sleep(pause)
		after, err2 := server.CPU()
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if after-before > idle {
			calm = 0
		}
	}
	return nil
}

// packed waits until all segments are packed except the one that takes lines.
func (o own) packed() error {
	for ; ; time.Sleep(20 * time.Millisecond) {
		text, err := answer(http.Get(o.url + "/metrics"))
		if err != nil {
			return err
		}
		segments, packed := metric(text, "rollway_journal_segments"), metric(text, "rollway_journal_packed_segments_total")
		if segments > 0 && packed >= segments-1 {
			return nil
		}
	}
}

// metric is the value of a metric without labels, -1 if there is none.
func metric(text []byte, name string) float64 {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return v
		}
	}
	return -1
}

// answer reads a response to its end.
func answer(r *http.Response, err error) ([]byte, error) {
	text, _, err := answerOf(r, err)
	return text, err
}

// answerOf is answer, with what the trailer says of estimates.
func answerOf(r *http.Response, err error) (text []byte, estimate string, _ error) {
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	text, err = io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", r.StatusCode, bytes.TrimSpace(text))
	}
	return text, r.Trailer.Get("Rollway-Estimates"), cmp.Or(err, failed(r.Trailer.Get("Rollway-Error")))
}

func failed(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}

func (o own) ask(q Query) (answered, error) {
	return o.get("/api/query?"+q.Rollway.Encode(), func(text []byte) ([]string, error) { return ownRows(text, q.columns) })
}

// get asks a server for path, whose answer rows reads.
func (p process) get(path string, rows func(text []byte) ([]string, error)) (a answered, err error) {
	request, err := http.NewRequest("GET", p.url+path, nil)
	if err != nil {
		return a, err
	}
	request.Header.Set("TE", "trailers")
	var text []byte
	if a.Cost, err = p.timed(func() (err error) {
		text, a.estimate, err = answerOf(http.DefaultClient.Do(request))
		return err
	}); err != nil {
		return a, err
	}
	a.rows, err = rows(text)
	return a, err
}

// ownRows makes comparable rows of lines, or of rows with these columns.
func ownRows(text []byte, columns []string) (rows []string, err error) {
	for line := range bytes.Lines(text) {
		var row map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&row); err != nil {
			return nil, err
		}
		at := int64(0)
		if written, ok := cmp.Or(row["time"], row["_time"]).(string); ok {
			t, err := time.Parse(time.RFC3339, written)
			if err != nil {
				return nil, err
			}
			at = t.UnixMicro()
		}
		if columns == nil {
			rows = append(rows, strconv.FormatInt(at, 10))
			continue
		}
		row["time"] = at / 1e6
		var cells []string
		for _, name := range columns {
			cells = append(cells, fmt.Sprint(row[name]))
		}
		rows = append(rows, strings.Join(cells, "\t"))
	}
	return rows, nil
}

//go:embed engine.py
var script string

// sql is an engine in a process of Python.
type sql struct {
	process
	kind string
}

// reply is what the process says.
type reply struct {
	Version, Error string
	Wall, CPU      float64
	Stored         int64
	Rows           []string
}

// packages are Python's, with chdb and DuckDB.
var packages = []string{"chdb==4.4.0", "duckdb==2.0.1"}

// startSQL starts ClickHouse or DuckDB.
func startSQL(s Settings, kind, folder string) (engine, error) {
	dir, err := fetch.Dir("query-"+strings.Join(packages, "-"), s.Fetch, func(part string) *exec.Cmd { return fetch.Pip(part, packages...) })
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("python3", "-c", script, kind, folder)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	p, err := child.Talk(cmd)
	if err != nil {
		return nil, err
	}
	var r reply
	if err := p.Receive(&r); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return sql{process{p, r.Version, folder, ""}, kind}, nil
}

func (s sql) command(c map[string]any) (r reply, err error) {
	err = s.Ask(c, &r)
	return r, cmp.Or(err, failed(r.Error))
}

func (s sql) load(file string) (Cost, int64, error) {
	r, err := s.command(map[string]any{"load": file})
	return Cost{r.Wall, r.CPU}, r.Stored, err
}

func (s sql) ask(q Query) (answered, error) {
	text := q.ClickHouse
	if s.kind == DuckDB {
		text = q.DuckDB
	}
	r, err := s.command(map[string]any{"sql": text, "lines": q.columns == nil})
	return answered{Cost: Cost{r.Wall, r.CPU}, rows: r.Rows}, err
}

// pipe is `zstd -dc | rg`: processes for each question.
type pipe struct {
	folder string
	most   int64
	ctx    context.Context
	cancel context.CancelFunc
}

func startPipe(folder string) (engine, error) {
	for _, name := range []string{"zstd", "rg"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, err
		}
	}
	p := &pipe{folder: folder}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

func (p *pipe) dir() string  { return p.folder }
func (p *pipe) kill()        { p.cancel() }
func (p *pipe) stop() error  { p.cancel(); return nil }
func (p *pipe) file() string { return filepath.Join(p.folder, "lines.zst") }

func (p *pipe) peak() (most int64, err error) {
	most, p.most = p.most, 0
	return most, nil
}

func (p *pipe) version() string {
	var all []string
	for _, name := range []string{"zstd", "rg"} {
		out, _ := exec.Command(name, "--version").Output()
		all = append(all, name+" "+regexp.MustCompile(`[0-9]+[.][0-9.]+`).FindString(string(out)))
	}
	return strings.Join(all, ", ")
}

// run runs a command of the shell.
func (p *pipe) run(command string) ([]byte, Cost, error) {
	cmd := exec.CommandContext(p.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	killAll(cmd)
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	begin, client := time.Now(), measure.ProcessCPU()
	err := cmd.Run()
	wall := time.Since(begin)
	if err != nil && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1 && said.Len() == 0 {
		err = nil // rg found nothing
	} else if err != nil {
		err = fmt.Errorf("%s: %w: %s", command, err, said.Bytes())
	}
	if cmd.ProcessState == nil {
		return nil, Cost{}, err
	}
	p.most = max(p.most, mostOf(cmd.ProcessState))
	return out.Bytes(), Cost{wall.Seconds(), (measure.ProcessCPU() - client + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}, err
}

func (p *pipe) load(file string) (Cost, int64, error) {
	_, c, err := p.run("zstd -q -3 -T0 -o '" + p.file() + "' '" + file + "'")
	return c, folderSize(p.folder, ""), err
}

func (p *pipe) ask(q Query) (a answered, err error) {
	if q.Shell == "" {
		return a, errCannot
	}
	var out []byte
	if out, a.Cost, err = p.run("zstd -dc -T0 '" + p.file() + "' | " + q.Shell); err != nil {
		return a, err
	}
	if q.columns == nil {
		a.rows, err = ownRows(out, nil)
		return a, err
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if q.tally && len(f) == 2 {
			if at, err := time.Parse("2006-01-02T15", f[1]); err == nil {
				f[1] = strconv.FormatInt(at.Unix(), 10)
			}
			f[0], f[1] = f[1], f[0]
		}
		a.rows = append(a.rows, strings.Join(f, "\t"))
	}
	return a, nil
}

// folderSize is how many bytes the files of a folder take whose names end so.
func folderSize(dir, suffix string) (size int64) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, suffix) {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
