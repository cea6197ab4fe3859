package receivertest

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
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// documents are what the Go clients send: two good ones and a bad one.
var documents = []string{
	`{"@timestamp":"2026-05-28T12:40:00.5Z","message":"first","log":{"level":"warn"},"service":{"name":"shop"}}`,
	`not JSON`,
	`{"@timestamp":"2026-05-28T12:40:01Z","message":"second","trace.id":"4bf92f3577b34da6a3ce929d0e0e4736"}`,
}

func TestGoElasticsearch(t *testing.T) {
	Client(t, "elastic/go-elasticsearch", func(url string) {
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
	Client(t, "elastic/opensearch-go", func(url string) {
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

// The project's own writer: a line comes out as it was, except for the document's
// place.
func TestOwnWriter(t *testing.T) {
	lines := []string{
		`{"time":"2026-05-28T12:40:00.120000000Z","level":"WARN","msg":"first","service":"shop","error":{"type":"E"},"attrs":{"n":1}}`,
		`{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"second"}`,
	}
	Client(t, "elastic/rollway", func(url string) {
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
	s := Run(t, nil)
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

// TestElasticFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestElasticFluentBit(t *testing.T) {
	const at = "    host HOST\n    port PORT\n    trace_error on\n"
	Agents(t, FluentBit, map[string]string{
		"elastic/fluent-bit-es":         "    name es\n" + at,
		"elastic/fluent-bit-es-nanos":   "    name es\n" + at + "    suppress_type_name on\n    time_key_nanos on\n    generate_id on\n    include_tag_key on\n    logstash_format on\n    compress gzip\n",
		"elastic/fluent-bit-opensearch": "    name opensearch\n" + at + "    suppress_type_name on\n    pipeline parse\n    write_operation create\n",
	})
}
