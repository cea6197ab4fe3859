package collector

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The sink of the configuration passes on what is posted, says so in the
// metrics, and is told from a broker that is away.
func TestKafkaSink(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "shop.logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg := testConfig(t)
	cfg.Kafka.Brokers, cfg.Kafka.Topic, cfg.Kafka.Key = "127.0.0.1:1", "shop.logs", "service"
	r := run(t, cfg) // nobody listens there
	const n = 50
	post := func(from int) {
		t.Helper()
		for i := from; i < from+n; i++ {
			if code, _, body := r.do(t, "POST", "/api/logs", fmt.Sprintf(`{"msg":"m %d","service":"s"}`, i)); code != 200 {
				t.Fatal(code, body)
			}
		}
	}
	post(0)
	if _, _, page := r.do(t, "GET", "/metrics", ""); !strings.Contains(page, fmt.Sprintf("\nrollway_sink_pending{sink=\"kafka\"} %d\n", n)) {
		t.Errorf("nothing is pending in\n%s", page)
	}
	if code, _, _ := r.do(t, "GET", "/readyz", ""); code != 200 {
		t.Errorf("a dead sink makes the collector not ready: %d", code)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Kafka.Brokers = strings.Join(cluster.ListenAddrs(), " ")
	r = run(t, cfg)
	post(n)
	for end := time.Now().Add(time.Minute); r.Stats().Sinks[0].Pending > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", r.Stats().Sinks)
		}
	}
	_, _, page := r.do(t, "GET", "/metrics", "")
	for _, line := range []string{
		fmt.Sprintf(`rollway_sink_delivered_total{sink="kafka"} %d`, 2*n), `rollway_sink_pending{sink="kafka"} 0`,
		`rollway_sink_dropped_total{reason="refused",sink="kafka"} 0`,
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("shop.logs"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for next := 0; next < 2*n; {
		for _, record := range c.PollFetches(ctx).Records() { // one key: one partition, in order
			if string(record.Key) != "s" || !strings.Contains(string(record.Value), fmt.Sprintf(`"msg":"m %d"`, next)) {
				t.Fatalf("record %d is %s with key %s", next, record.Value, record.Key)
			}
			next++
		}
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records", next, 2*n)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
