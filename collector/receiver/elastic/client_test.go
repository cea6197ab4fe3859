package elastic_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v4/opensearchutil"

	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// mask is for ids that a client makes of the time.
var mask = receivertest.Mask{"_id"}

func TestReplay(t *testing.T) { receivertest.Replay(t, mask) }

// documents are what the Go clients send: two good ones and a bad one.
var documents = []string{
	`{"@timestamp":"2026-05-28T12:40:00.5Z","message":"first","log":{"level":"warn"},"service":{"name":"shop"}}`,
	`not JSON`,
	`{"@timestamp":"2026-05-28T12:40:01Z","message":"second","trace.id":"4bf92f3577b34da6a3ce929d0e0e4736"}`,
}

func TestGoElasticsearch(t *testing.T) {
	receivertest.Client(t, "go-elasticsearch", mask, func(url string) {
		client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, CompressRequestBody: true})
		if err != nil {
			t.Fatal(err)
		}
		info, err := client.Info()
		if err != nil || info.IsError() {
			t.Fatal(info, err)
		}
		info.Body.Close()
		bulk, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: client, Index: "logs-shop-default", NumWorkers: 1})
		if err != nil {
			t.Fatal(err)
		}
		var good, bad []string
		for i, doc := range documents {
			err := bulk.Add(t.Context(), esutil.BulkIndexerItem{
				Action: "create", DocumentID: fmt.Sprint("id", i), Body: strings.NewReader(doc),
				OnSuccess: func(_ context.Context, it esutil.BulkIndexerItem, res esutil.BulkIndexerResponseItem) {
					good = append(good, fmt.Sprint(it.DocumentID, res.DocumentID, res.Index, res.Status, res.SeqNo))
				},
				OnFailure: func(_ context.Context, it esutil.BulkIndexerItem, res esutil.BulkIndexerResponseItem, err error) {
					bad = append(bad, fmt.Sprint(it.DocumentID, res.DocumentID, res.Status, res.Error.Type, err))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := bulk.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(good) != "[id0id0logs-shop-default201 0 id2id2logs-shop-default201 1]" ||
			fmt.Sprint(bad) != "[id1id1400document_parsing_exception<nil>]" {
			t.Errorf("good %v, bad %v", good, bad)
		}
	})
}

func TestOpenSearchGo(t *testing.T) {
	receivertest.Client(t, "opensearch-go", mask, func(url string) {
		client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{url + elastic.Prefix}}})
		if err != nil {
			t.Fatal(err)
		}
		info, err := client.Info(t.Context(), nil)
		if err != nil || info.Version.Number == "" {
			t.Fatal(info, err)
		}
		bulk, err := opensearchutil.NewBulkIndexer(opensearchutil.BulkIndexerConfig{Client: client, Index: "logs", NumWorkers: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents {
			if err := bulk.Add(t.Context(), opensearchutil.BulkIndexerItem{Action: "index", Body: strings.NewReader(doc)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := bulk.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := bulk.Stats(); s.NumIndexed != 2 || s.NumFailed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestPython(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "elasticsearch-py", mask, func(url string) {
		receivertest.Python(t, `
from elasticsearch import Elasticsearch, helpers
es = Elasticsearch("`+url+`", http_compress=True)
assert es.ping()
assert es.info()["version"]["number"] == "8.17.0"
assert es.cluster.health()["status"] == "green"
es.indices.put_index_template(name="logs-shop", index_patterns=["logs-shop-*"], data_stream={})
assert es.indices.exists(index="logs-shop-default")
docs = [{"_op_type": "create", "_index": "logs-shop-default",
         "@timestamp": "2026-05-28T12:40:00Z", "message": "line %d" % i,
         "log": {"level": "error", "logger": "shop.cart"}, "labels": {"n": i}} for i in range(3)]
docs.append({"_op_type": "delete", "_index": "logs-shop-default", "_id": "x"})
ok, errors = helpers.bulk(es, docs, raise_on_error=False)
assert ok == 3 and len(errors) == 1 and errors[0]["delete"]["status"] == 400, (ok, errors)
es.indices.refresh(index="logs-shop-default")
`, "elasticsearch==9.5.1")
	})
}

func TestPino(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "its clients come from a registry")
	receivertest.Client(t, "pino-elasticsearch", mask, func(url string) {
		receivertest.Node(t, `
const pino = require('pino')
const to = require('pino-elasticsearch')({ index: 'logs-shop-default', node: '`+url+`', esVersion: 8, opType: 'create', flushBytes: 1e6 })
const fail = (what) => (err) => { console.error(what, err); process.exit(1) }
to.on('unknown', fail('unknown')); to.on('error', fail('error')); to.on('insertError', fail('insertError'))
to.on('insert', (stats) => { console.log(JSON.stringify(stats)); if (stats.failed) process.exit(1) })
const log = pino({ level: 'debug', base: { pid: 7, hostname: 'web-1' } }, to)
const err = new TypeError('no price')
err.stack = 'TypeError: no price\n    at pay (shop.js:9:11)'
log.warn({ cart: { items: 3 } }, 'cart is large')
log.error(err, 'payment failed')
log.debug('done')
to.end()
`, "pino-elasticsearch@9.0.0", "pino@10.4.0")
	})
}

// The project's own writer: a line comes out as it was, but for the document's
// place.
func TestOwnWriter(t *testing.T) {
	lines := []string{
		`{"time":"2026-05-28T12:40:00.120000000Z","level":"WARN","msg":"first","service":"shop","error":{"type":"E"},"attrs":{"n":1}}`,
		`{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"second"}`,
	}
	receivertest.Client(t, "rollway", mask, func(url string) {
		w, err := remote.Open("elastic+"+url+"/logs-shop-default", remote.Options{Compress: remote.Gzip{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Dropped != (line.Drops{}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestFullIsRetried: the client sends again what a full collector refused.
func TestFullIsRetried(t *testing.T) {
	s := receivertest.Run(t, nil)
	refusals := 2
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "_bulk") && refusals > 0 {
			refusals--
			return fullAnswer(t, r)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{s.URL}, Transport: transport,
		RetryBackoff: func(int) time.Duration { return time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Bulk(bytes.NewReader([]byte("{\"create\":{}}\n{\"message\":\"x\"}\n")))
	if err != nil || res.IsError() {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if n := len(s.Lines(t)); n != 1 || refusals != 0 {
		t.Errorf("%d lines, %d refusals left", n, refusals)
	}
}

// TestFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestFluentBit(t *testing.T) {
	const at = "    host HOST\n    port PORT\n    trace_error on\n"
	receivertest.Agents(t, mask, receivertest.FluentBit, map[string]string{
		"fluent-bit-es":         "    name es\n" + at,
		"fluent-bit-es-nanos":   "    name es\n" + at + "    suppress_type_name on\n    time_key_nanos on\n    generate_id on\n    include_tag_key on\n    logstash_format on\n    compress gzip\n",
		"fluent-bit-opensearch": "    name opensearch\n" + at + "    suppress_type_name on\n    pipeline parse\n    write_operation create\n",
	})
}
