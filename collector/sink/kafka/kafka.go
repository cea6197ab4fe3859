// Package kafka is a sink's destination that produces to a topic of Apache Kafka
// or of what speaks its protocol.
//
// Each line is a record: the line without its '\n' as the value, one field of it as the
// key if Options.Key names one, and the headers rollway-journal and rollway-offset, by
// which a consumer recognizes a line. The producer is idempotent and waits for all
// in-sync replicas. Within a partition lines come in the order of the journal; after a
// restart some may come again, in their order, to the same partition.
package kafka

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Options of a Destination; a field that is zero means its default.
type Options struct {
	Brokers     []string // host:port of some of the brokers; required
	Topic       string   // required
	Key         string   // top-level key of a line whose value is the record's key; empty: records have none and are spread
	Journal     string   // the journal's ID, for the header
	MaxRecord   int      // bytes of a record, as the topic's max.message.bytes; at most 100 MiB, default 1,000,000
	Compression string   // none, gzip, snappy, lz4 or zstd; default none

	TLS      *tls.Config // nil: connections are not encrypted
	SASL     string      // none, plain, scram-sha-256 or scram-sha-512; default none
	User     string      // for SASL
	Password Secret      // likewise

	Log *slog.Logger // default: none
}

// A Secret is not printed.
type Secret string

// String hides the secret.
func (Secret) String() string { return "(secret)" }

// GoString hides the secret.
func (Secret) GoString() string { return "(secret)" }

// HeaderJournal and HeaderOffset are the headers of every record.
const (
	HeaderJournal = "rollway-journal"
	HeaderOffset  = "rollway-offset"
)

var codecs = map[string]kgo.CompressionCodec{
	"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// A Destination produces batches to a topic.
type Destination struct {
	o      Options
	client *kgo.Client
}

// New returns a Destination. It does not wait for a broker.
func New(o Options) (*Destination, error) {
	codec, ok := codecs[o.Compression]
	switch {
	case len(o.Brokers) == 0 || o.Topic == "":
		return nil, errors.New("kafka: brokers and a topic are needed")
	case !ok:
		return nil, fmt.Errorf("kafka: unknown compression %q: known are none, gzip, snappy, lz4, zstd", o.Compression)
	}
	o.MaxRecord = cmp.Or(max(o.MaxRecord, 0), 1_000_000)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	security, err := o.security()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(security,
		kgo.ClientID("rollway"),
		kgo.WithLogger(&clientLog{log: o.Log, last: map[string]time.Time{}}),
		kgo.SeedBrokers(o.Brokers...),
		kgo.DefaultProduceTopic(o.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(int32(o.MaxRecord)),
		kgo.ProducerLinger(0), // the Runner has gathered the batch
		kgo.RecordPartitioner(newPartitioner()),
		kgo.MaxBufferedRecords(1<<20), // a batch is bounded by the Runner
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(100*time.Millisecond<<min(tries, 4), time.Second)
		}),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.UnknownTopicRetries(-1), // it may yet be made
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return &Destination{o: o, client: client}, nil
}

// security is how connections are encrypted and who the producer is.
func (o *Options) security() (opts []kgo.Opt, err error) {
	if o.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(o.TLS.Clone()))
	}
	named := scram.Auth{User: o.User, Pass: string(o.Password)}
	switch o.SASL {
	case "", "none":
		return opts, nil
	case "plain":
		opts = append(opts, kgo.SASL(plain.Auth{User: o.User, Pass: string(o.Password)}.AsMechanism()))
	case "scram-sha-256":
		opts = append(opts, kgo.SASL(named.AsSha256Mechanism()))
	case "scram-sha-512":
		opts = append(opts, kgo.SASL(named.AsSha512Mechanism()))
	default:
		return nil, fmt.Errorf("kafka: unknown SASL %q: known are none, plain, scram-sha-256, scram-sha-512", o.SASL)
	}
	if o.User == "" || o.Password == "" {
		return nil, fmt.Errorf("kafka: %s takes a user and a password", o.SASL)
	}
	return opts, nil
}

// Close ends the connections. What is being delivered is given up.
func (d *Destination) Close() { d.client.Close() }

// Deliver implements sink.Destination. The client itself tries again while brokers are
// away, so an error is one that somebody has to resolve, or the end of ctx, after which
// only Close may be called.
func (d *Destination) Deliver(ctx context.Context, b *sink.Batch) error {
	u := &underWay{batch: b, left: 1, over: make(chan struct{})} // 1 while records are begun
	journal := []byte(d.o.Journal)
	records := make([]kgo.Record, b.Len())
	for i := range records {
		if b.Settled(i) {
			continue
		}
		offset := b.First + uint64(i)
		record := &records[i]
		record.Value, record.Key = b.Line(i), field(b.Line(i), d.o.Key)
		record.Offset = int64(offset) // for the partitioner; the client overwrites it
		record.Headers = []kgo.RecordHeader{
			{Key: HeaderJournal, Value: journal},
			{Key: HeaderOffset, Value: strconv.AppendUint(nil, offset, 10)},
		}
		u.mu.Lock()
		u.left++
		u.mu.Unlock()
		d.client.Produce(ctx, record, func(_ *kgo.Record, err error) { u.end(i, err) })
	}
	u.end(-1, nil) // all are begun
	select {
	case <-u.over:
	case <-ctx.Done():
		// What a broker may have taken without an answer ends with the client only.
		u.mu.Lock()
		defer u.mu.Unlock()
		u.gone = true
		return ctx.Err()
	}
	if u.err != nil {
		return fmt.Errorf("produce to kafka topic %s: %w", d.o.Topic, u.err)
	}
	return nil
}

// underWay is a batch that is being produced.
type underWay struct {
	over chan struct{} // closed when nothing is left

	mu    sync.Mutex // guards all below, and batch while Deliver waits
	batch *sink.Batch
	left  int // records without an answer
	err   error
	gone  bool // Deliver has returned
}

// end notes the answer for line i of the batch; below 0 for no line.
func (u *underWay) end(i int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case i < 0 || u.gone:
	case err == nil:
		u.batch.Settle(i)
	case refused(err):
		u.batch.Refuse(i, err)
	case u.err == nil:
		u.err = err
	}
	if u.left--; u.left == 0 {
		close(u.over)
	}
}

// refused reports whether no later try of the same record can go well.
func refused(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.InvalidRecord)
}

// field returns a copy of a top-level value of line, of a string the text; nil without one.
func field(line []byte, name string) []byte {
	if name == "" {
		return nil
	}
	for w := jsonwalk.Members(line, 0); w.Next(); {
		key, buf := jsonwalk.Text(w.RawName(), nil)
		if string(key) != name {
			continue
		}
		value := w.RawValue()
		if value[0] == '"' {
			value, _ = jsonwalk.Text(value, buf[:0])
		}
		return bytes.Clone(value)
	}
	return nil
}

// stretch is the number of consecutive lines without key that go to one
// partition.
const stretch = 256

// partitioner sends records with a key where Kafka's own clients do, and others
// by their offset in the journal: a line that is sent again goes where it went.
type partitioner struct{ keyed kgo.Partitioner }

func newPartitioner() kgo.Partitioner { return partitioner{kgo.StickyKeyPartitioner(nil)} }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.keyed.ForTopic(topic)}
}

type topicPartitioner struct{ keyed kgo.TopicPartitioner }

// RequiresConsistency makes the client choose among all partitions, also those
// that cannot be written to at the moment.
func (topicPartitioner) RequiresConsistency(*kgo.Record) bool { return true }

func (p topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Key != nil {
		return p.keyed.Partition(r, n)
	}
	return int(r.Offset / stretch % int64(n))
}

// logEvery is how often the client may say the same.
const logEvery = 10 * time.Second

// clientLog passes on what the client warns of, such as a broker that refuses the
// password: it tries again for ever, and nobody would know otherwise. What it says
// holds no secrets.
type clientLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text; there are few texts
}

// Level is the least that Log is called for.
func (*clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log is called by the client.
func (l *clientLog) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, said := l.last[msg]; said && now.Sub(last) < logEvery {
		return
	}
	l.last[msg] = now
	l.log.Warn("kafka: "+msg, keyvals...)
}
