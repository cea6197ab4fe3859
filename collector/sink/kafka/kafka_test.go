package kafka_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
)

const (
	topic      = "logs"
	partitions = 3

	limit = 5 * time.Minute // for what must come, however busy the machine is
)

// lines returns n canonical lines of two services, numbered from from.
func lines(from, n int) journal.Batch {
	b := journal.Batch{Records: n}
	for i := from; i < from+n; i++ {
		b.Lines = fmt.Appendf(b.Lines, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"n %d","service":"s%d","attrs":{"service":"not this"}}`+"\n", i, i%7)
	}
	return b
}

func store(t *testing.T, j *journal.Journal, from, n int) {
	t.Helper()
	if _, err := j.Append(context.Background(), lines(from, n)); err != nil {
		t.Fatal(err)
	}
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// run passes the lines of j on until the function it returns is called.
func run(t *testing.T, j *journal.Journal, o kafka.Options) (*sink.Runner, func()) {
	t.Helper()
	o.Topic, o.Journal = topic, j.ID()
	d, err := kafka.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sink.New(j, d, sink.Options{Name: "kafka", MaxEvents: 100, MaxAge: time.Millisecond, MaxBackoff: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		d.Close()
		r.Close()
	}
}

// storeAll stores n lines, a few at a time.
func storeAll(t *testing.T, j *journal.Journal, n int) {
	t.Helper()
	for i := range n / 10 {
		store(t, j, 10*i, 10)
	}
}

// awaitDelivered waits until nothing is pending and checks the ledger.
func awaitDelivered(t *testing.T, j *journal.Journal, r *sink.Runner, began uint64) sink.Stats {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		s := r.Stats()
		if s.Pending == 0 {
			sum := s.Delivered
			for _, n := range s.Dropped {
				sum += n
			}
			if sum != j.Next()-began {
				t.Errorf("%d lines, but %+v", j.Next()-began, s)
			}
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("not delivered: %+v", s)
		}
	}
}

// consume reads the topic until it has each of the n lines, or for limit of
// silence, and checks values, keys, headers, and the order in each partition: a
// line comes after those before it, and may come again.
func consume(t *testing.T, brokers []string, j *journal.Journal, n int, key string) (times map[int]int) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	times = map[int]int{}
	highest := map[int32]int{} // partition → greatest number seen
	where := map[string]int32{}
	for len(times) < n {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		fetches := c.PollFetches(ctx)
		cancel()
		if err := ctx.Err(); err == context.DeadlineExceeded {
			t.Fatalf("%d of %d lines after so long a silence", len(times), n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			i, err := strconv.Atoi(headers[kafka.HeaderOffset])
			want := strings.TrimSuffix(string(lines(i, 1).Lines), "\n")
			if err != nil || headers[kafka.HeaderJournal] != j.ID() || string(r.Value) != want {
				t.Fatalf("record %s with headers %v", r.Value, headers)
			}
			if key == "" && r.Key != nil || key != "" && string(r.Key) != fmt.Sprintf("s%d", i%7) {
				t.Fatalf("record %d has key %q", i, r.Key)
			}
			if p, ok := where[string(r.Key)]; key != "" && ok && p != r.Partition {
				t.Fatalf("key %s is in partitions %d and %d", r.Key, p, r.Partition)
			}
			where[string(r.Key)] = r.Partition
			if last, ok := highest[r.Partition]; times[i] == 0 && ok && last > i {
				t.Errorf("partition %d: line %d came first after %d", r.Partition, i, last)
			}
			if r.ProducerID < 0 || r.ProducerEpoch < 0 {
				t.Fatalf("record %d is of producer %d in epoch %d: not of an idempotent one", i, r.ProducerID, r.ProducerEpoch)
			}
			highest[r.Partition] = max(highest[r.Partition], i)
			times[i]++
		})
	}
	if len(highest) != partitions {
		t.Errorf("lines are in %d partitions of %d", len(highest), partitions)
	}
	return times
}

func fakeCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(3), kfake.SeedTopics(partitions, topic))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestProduce(t *testing.T) {
	for _, key := range []string{"", "service"} {
		for _, codec := range []string{"none", "zstd"} {
			t.Run(key+" "+codec, func(t *testing.T) {
				c := fakeCluster(t)
				j := openJournal(t)
				r, stop := run(t, j, kafka.Options{Brokers: c.ListenAddrs(), Key: key, Compression: codec})
				const n = 2000
				storeAll(t, j, n)
				awaitDelivered(t, j, r, 0)
				stop()
				for i, times := range consume(t, c.ListenAddrs(), j, n, key) {
					if times != 1 {
						t.Errorf("line %d came %d times", i, times)
					}
				}
			})
		}
	}
}

// What goes over the wire is what brokers know a batch again by: each batch has the
// one producer's id and the number of its first record in its partition, and asks
// for all in-sync replicas.
func TestIdempotentOnTheWire(t *testing.T) {
	c := fakeCluster(t)
	var mu sync.Mutex
	next, producers, records := map[int32]int32{}, map[int64]bool{}, 0
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		produce := req.(*kmsg.ProduceRequest)
		if produce.Acks != -1 {
			t.Errorf("acks=%d, want those of all in-sync replicas, -1", produce.Acks)
		}
		for _, rt := range produce.Topics {
			for _, rp := range rt.Partitions {
				var b kmsg.RecordBatch
				if err := b.ReadFrom(rp.Records); err != nil {
					t.Errorf("partition %d: %v", rp.Partition, err)
					continue
				}
				if b.ProducerID < 0 || b.ProducerEpoch < 0 || b.FirstSequence != next[rp.Partition] {
					t.Errorf("partition %d: producer %d, epoch %d, sequence %d, want %d", rp.Partition, b.ProducerID, b.ProducerEpoch, b.FirstSequence, next[rp.Partition])
				}
				next[rp.Partition] = b.FirstSequence + b.NumRecords
				producers[b.ProducerID] = true
				records += int(b.NumRecords)
			}
		}
		return nil, nil, false
	})
	j := openJournal(t)
	r, stop := run(t, j, kafka.Options{Brokers: c.ListenAddrs()})
	const n = 1000
	storeAll(t, j, n)
	awaitDelivered(t, j, r, 0)
	stop()
	mu.Lock()
	defer mu.Unlock()
	if records != n || len(producers) != 1 || len(next) != partitions {
		t.Errorf("%d records of %d producers in %d partitions, want %d, 1 and %d", records, len(producers), len(next), n, partitions)
	}
}

// Brokers that answer requests with errors that pass: nothing is lost, and in
// each partition the order stays.
func TestErrorsThatPass(t *testing.T) {
	c := fakeCluster(t)
	requests := 0
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if requests++; requests%3 != 0 || requests > 60 {
			return nil, nil, false
		}
		produce := req.(*kmsg.ProduceRequest)
		resp := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range produce.Topics {
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition = rp.Partition
				sp.ErrorCode = []*kerr.Error{kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicas}[requests/3%3].Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	j := openJournal(t)
	r, stop := run(t, j, kafka.Options{Brokers: c.ListenAddrs()})
	const n = 3000
	storeAll(t, j, n)
	awaitDelivered(t, j, r, 0)
	stop()
	consume(t, c.ListenAddrs(), j, n, "")
}

// A record that no broker takes is dropped and counted, and the others come.
func TestTooLarge(t *testing.T) {
	c := fakeCluster(t)
	j := openJournal(t)
	r, stop := run(t, j, kafka.Options{Brokers: c.ListenAddrs(), MaxRecord: 2000})
	defer stop()
	store(t, j, 0, 5)
	long := []byte(`{"msg":"` + strings.Repeat("x", 5000) + `"}` + "\n")
	if _, err := j.Append(context.Background(), journal.Batch{Lines: long, Records: 1}); err != nil {
		t.Fatal(err)
	}
	store(t, j, 6, 5)
	if s := awaitDelivered(t, j, r, 0); s.Delivered != 10 || s.Dropped[sink.ReasonRefused] != 1 {
		t.Errorf("%+v", s)
	}
}

// A process that ends while no broker answers leaves the lines to the next one.
func TestNobodyListens(t *testing.T) {
	j := openJournal(t)
	r, stop := run(t, j, kafka.Options{Brokers: []string{"127.0.0.1:1"}})
	store(t, j, 0, 700)
	time.Sleep(50 * time.Millisecond)
	stop()
	if s := r.Stats(); s.Pending != 700 || s.Delivered != 0 || s.Cursor != 0 {
		t.Errorf("%+v", s)
	}
	c := fakeCluster(t)
	r, stop = run(t, j, kafka.Options{Brokers: c.ListenAddrs()})
	awaitDelivered(t, j, r, 0)
	stop()
	consume(t, c.ListenAddrs(), j, 700, "")
}

func TestOptions(t *testing.T) {
	for _, o := range []kafka.Options{{}, {Topic: "t"}, {Brokers: []string{"a:1"}}, {Brokers: []string{"a:1"}, Topic: "t", Compression: "brotli"},
		{Brokers: []string{"a:1"}, Topic: "t", SASL: "gssapi"}, {Brokers: []string{"a:1"}, Topic: "t", SASL: "plain", User: "u"}} {
		if _, err := kafka.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	var c config.Config
	if c.Set("kafka.max_record", "104857601") == nil {
		t.Error("a configuration may ask for more than the client takes")
	}
	for _, limit := range []string{"1KiB", "100MiB"} {
		if err := c.Set("kafka.max_record", limit); err != nil {
			t.Fatal(err)
		}
		d, err := kafka.New(kafka.Options{Brokers: []string{"a:1"}, Topic: "t", MaxRecord: int(c.Kafka.MaxRecord)})
		if err != nil {
			t.Fatalf("kafka.max_record %s: %v", limit, err)
		}
		d.Close()
	}
}
