package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
)

// An openSearch is a real one, run from its jars.
type openSearch struct{ url string }

// startOpenSearch runs a node. The jars, 53 MB, are fetched by Maven into the
// user's cache only if nothing may be skipped; otherwise they have to be there.
func startOpenSearch(t *testing.T) *openSearch {
	t.Helper()
	java := testkit.Program(t, "java")
	cache, err := os.UserCacheDir()
	if err != nil {
		testkit.Missing(t, "a folder for caches: "+err.Error())
	}
	jars := filepath.Join(cache, "rollway-test", "opensearch-2.19.1")
	if _, err := os.Stat(jars); err != nil {
		if !testkit.All() {
			testkit.Missing(t, "OpenSearch's jars in "+jars+", where Maven puts them with REQUIRE=all")
		}
		fetchOpenSearch(t, jars)
	}
	port := freePort(t)
	dir := t.TempDir()
	cmd := exec.Command(java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(jars, "*"), "testdata/opensearch/Node.java", dir, fmt.Sprint(port))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		stop.Close()
		<-exited
		if t.Failed() {
			t.Logf("OpenSearch said: %.5000s", log.String())
		}
	})
	s := &openSearch{fmt.Sprintf("http://127.0.0.1:%d", port)}
	for i := 0; ; i++ { // a start takes 5 s, and much longer on a busy machine
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("OpenSearch ended: %v", err)
		default:
		}
		resp, err := http.Get(s.url + "/_cluster/health?wait_for_status=yellow&timeout=30s")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return s
			}
		}
		if i > 3000 {
			t.Fatal("OpenSearch does not answer")
		}
		exec.Command("sleep", "0.1").Run()
	}
}

func fetchOpenSearch(t *testing.T, jars string) {
	mvn := testkit.Program(t, "mvn")
	pom, err := filepath.Abs("testdata/opensearch/pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	err = fetch.Into(jars, func(part string) *exec.Cmd {
		return exec.Command(mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+part, "-DincludeScope=runtime")
	})
	if err != nil {
		testkit.Missing(t, fmt.Sprintf("OpenSearch, which Maven cannot fetch: %v", err))
	}
}

// do makes a request and decodes its answer.
func (s *openSearch) do(t *testing.T, method, path, body string) (answer map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(data, &answer); err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, data)
	}
	return answer
}

func (s *openSearch) count(t *testing.T, index string) int {
	t.Helper()
	s.do(t, "POST", "/"+index+"/_refresh", "")
	return int(s.do(t, "GET", "/"+index+"/_count", "")["count"].(float64))
}

func TestOpenSearch(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "OpenSearch")
	s := startOpenSearch(t)
	s.do(t, "PUT", "/_index_template/logs", `{"index_patterns":["logs-*"],"data_stream":{},"template":{
		"settings":{"number_of_replicas":0},"mappings":{"properties":{"attrs":{"properties":{"seq":{"type":"long"}}}}}}}`)

	for _, index := range []string{"logs-shop-default", "plain"} { // a data stream and an index
		t.Run(index, func(t *testing.T) {
			var told []error
			w := open(t, "elastic+"+s.url+"/"+index, remote.Options{
				Compress: remote.Gzip{}, OnError: func(err error) { told = append(told, err) },
				Timeout: 3 * time.Minute, // it has just begun, on a busy machine
			})
			write(t, w, numbered(0, 500))
			poison := `{"msg":"poison","attrs":{"seq":"no number"}}` + "\n"
			write(t, w, numbered(500, 600)+poison+"panic: not JSON\n"+`{"time":"2026-05-28T12:40:00.123456789Z","msg":"timed"}`+"\n"+numbered(600, 1000))
			settled(t, w, 1003, 1002)
			if n := s.count(t, index); n != 1002 {
				t.Errorf("%d documents, want 1002", n)
			}
			hit := s.do(t, "GET", "/"+index+"/_search?q=msg:timed", "")
			source := hit["hits"].(map[string]any)["hits"].([]any)[0].(map[string]any)["_source"].(map[string]any)
			if source["@timestamp"] != "2026-05-28T12:40:00.123456789Z" || source["msg"] != "timed" {
				t.Errorf("document %v", source)
			}

			// An index that takes no writes is not the lines' fault.
			s.do(t, "PUT", "/"+index+"/_settings", `{"index.blocks.write":true}`)
			n, err := w.Write([]byte(numbered(1000, 1010)))
			if n != 0 || err == nil || !strings.Contains(err.Error(), "cluster_block_exception") {
				t.Errorf("Write to a blocked index = %d, %v", n, err)
			}
			s.do(t, "PUT", "/"+index+"/_settings", `{"index.blocks.write":false}`)
			write(t, w, numbered(1000, 1010))
			if n := s.count(t, index); n != 1012 {
				t.Errorf("%d documents, want 1012", n)
			}
			w.Close()
			settled(t, w, 1013, 1012)
			w.Told()
			if len(told) == 0 || !strings.Contains(fmt.Sprint(told), "mapper_parsing_exception") {
				t.Errorf("OnError was told %v", told)
			}
		})
	}

	// The answer is lost, the lines are stored: sent again they are not stored
	// twice.
	t.Run("once", func(t *testing.T) {
		var lost atomic.Bool
		proxy := newHTTPPeer(t)
		proxy.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			resp, err := http.Post(s.url+r.URL.String(), r.Header.Get("Content-Type"), r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if !lost.Swap(true) {
				io.Copy(io.Discard, resp.Body)
				panic(http.ErrAbortHandler)
			}
			rw.WriteHeader(resp.StatusCode)
			io.Copy(rw, resp.Body)
		})
		proxy.Start()
		w := open(t, "elastic+"+proxy.URL+"/once", remote.Options{Timeout: 3 * time.Minute})
		all := numbered(0, 100)
		for n := 0; n < len(all); {
			m, _ := w.Write([]byte(all[n:]))
			n += m
		}
		if n := s.count(t, "once"); n != 100 {
			t.Errorf("%d documents, want 100", n)
		}
		settled(t, w, 100, 100)
	})
}
