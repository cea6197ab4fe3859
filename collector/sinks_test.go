package collector

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/sink"
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

// What a broker that is away has not got outlives restarts, whatever retention would
// delete.
func TestKafkaHoldsAcrossRestarts(t *testing.T) {
	cfg := testConfig(t)
	cfg.Kafka.Brokers, cfg.Kafka.Topic = "127.0.0.1:1", "logs" // nobody listens there
	cfg.Journal.SegmentSize, cfg.Journal.RetainSize = 2000, 4000
	for n := range 8 {
		r := run(t, cfg)
		if first := r.journal.First(); first != 0 {
			t.Fatalf("after %d restarts, lines below %d are gone", n, first)
		}
		for range 40 {
			if code, _, body := r.do(t, "POST", "/api/logs", `{"msg":"for Kafka"}`); code != 200 {
				t.Fatal(code, body)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Kafka.WhenFull = config.DropOldest
	r := run(t, cfg)
	for end := time.Now().Add(time.Minute); r.journal.First() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("retention deletes nothing")
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// What a sink had not delivered when it was taken out of the configuration is counted
// as dropped once it is back, if retention has deleted it meanwhile: also by one that
// has never delivered anything.
func TestSinkTakenAwayAndBack(t *testing.T) {
	cfg := testConfig(t)
	cfg.Journal.SegmentSize, cfg.Journal.RetainSize = 2000, 4000
	cfg.Journal.Compression = config.NoCompression // packed in time, all lines would be less than that
	with := cfg
	with.Kafka.Brokers, with.Kafka.Topic = "127.0.0.1:1", "logs" // nobody listens there
	fill := func(r *running) {
		t.Helper()
		for range 40 {
			if code, _, body := r.do(t, "POST", "/api/logs", `{"msg":"for Kafka"}`); code != 200 {
				t.Fatal(code, body)
			}
		}
	}
	r := run(t, with)
	fill(r)
	if s := r.Stats().Sinks[0]; s.Pending != 40 || r.journal.First() != 0 {
		t.Fatalf("%+v", s)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, cfg)
	fill(r)
	for end := time.Now().Add(time.Minute); r.journal.First() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a sink that is gone holds what it has not delivered")
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, with)
	gone := r.journal.First()
	var s sink.Stats
	for end := time.Now().Add(time.Minute); s.Dropped[sink.ReasonRetention] != gone; time.Sleep(time.Millisecond) {
		if s = r.Stats().Sinks[0]; time.Now().After(end) {
			t.Fatalf("%d lines are gone: %+v", gone, s)
		}
	}
	if s.From != 0 || s.Pending+gone != 80 {
		t.Errorf("%+v", s)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// Brokers that want TLS with certificates of clients and a password get both, by
// every mechanism. A wrong password delivers nothing and loses nothing; no
// password is in the log or the metrics.
func TestKafkaSecurity(t *testing.T) {
	const right, wrong = "correct horse", "battery staple"
	a := newAuthority(t)
	dir := t.TempDir()
	cert, key, _ := a.issue(t)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	clientCert, clientKey, _ := a.issue(t)
	ca, certFile, keyFile := file("ca.pem", a.pem()), file("cert.pem", clientCert), file("key.pem", clientKey)
	t.Setenv("TEST_KAFKA_PASSWORD", right)
	for i, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "logs"), kfake.EnableSASL(), kfake.Superuser(mechanism, "shop", right),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			var attempts atomic.Int64
			const authenticate = 36 // the request's number
			cluster.ControlKey(authenticate, func(kmsg.Request) (kmsg.Response, error, bool) {
				attempts.Add(1)
				cluster.KeepControl()
				return nil, nil, false
			})
			cfg := testConfig(t)
			k := &cfg.Kafka
			k.Brokers = strings.Join(cluster.ListenAddrs(), " ")
			k.TLS, k.TLSCA, k.TLSCert, k.TLSKey = "on", ca, certFile, keyFile
			k.SASL, k.User, k.PasswordFile = strings.ToLower(mechanism), "shop", file("wrong", wrong+"\n")
			r := run(t, cfg)
			if code, _, body := r.do(t, "POST", "/api/logs", `{"msg":"for Kafka"}`); code != 200 {
				t.Fatal(code, body)
			}
			for end := time.Now().Add(time.Minute); attempts.Load() < 5; time.Sleep(time.Millisecond) { // an attempt takes two at most
				if time.Now().After(end) {
					t.Fatalf("%d attempts, then none: %s", attempts.Load(), r.log)
				}
			}
			if s := r.Stats().Sinks[0]; s.Pending != 1 || s.Delivered != 0 {
				t.Errorf("with a wrong password: %+v", s)
			}
			_, _, page := r.do(t, "GET", "/metrics", "")
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			log := r.log.String()
			if k.PasswordFile, k.PasswordEnv = "", "TEST_KAFKA_PASSWORD"; i == 0 {
				k.PasswordFile, k.PasswordEnv = file("right", right), ""
			}
			r = run(t, cfg)
			for end := time.Now().Add(time.Minute); r.Stats().Sinks[0].Delivered != 1; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%+v\n%s", r.Stats().Sinks, r.log)
				}
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{page, log, r.log.String()} {
				if strings.Contains(text, right) || strings.Contains(text, wrong) {
					t.Errorf("a password is in %s", text)
				}
			}
		})
	}
}

// What cannot be used of the settings stops the collector from starting, and is
// told without the secret.
func TestSecretsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	kafka := func(change func(k *config.Kafka)) func(*config.Config) {
		return func(cfg *config.Config) {
			cfg.Kafka.Brokers, cfg.Kafka.SASL, cfg.Kafka.User = "127.0.0.1:1", "scram-sha-256", "u"
			change(&cfg.Kafka)
		}
	}
	for want, change := range map[string]func(*config.Config){
		"kafka.password_file: open": kafka(func(k *config.Kafka) { k.PasswordFile = filepath.Join(dir, "none") }),
		"empty is empty":            kafka(func(k *config.Kafka) { k.PasswordFile = file("empty", "\n") }),
		"more than one line":        kafka(func(k *config.Kafka) { k.PasswordFile = file("two", "hidden\nhidden") }),
		"no ROLLWAY_TEST_NOTHING":   kafka(func(k *config.Kafka) { k.PasswordEnv = "ROLLWAY_TEST_NOTHING" }),
		"kafka.sasl: scram-sha-256": kafka(func(k *config.Kafka) {}),
		"kafka.tls: certificates":   kafka(func(k *config.Kafka) { k.PasswordFile, k.TLSCA = file("p", "hidden"), "ca.pem" }),
		"kafka.tls_ca: open": kafka(func(k *config.Kafka) {
			k.PasswordFile, k.TLS, k.TLSCA = file("p", "hidden"), "on", filepath.Join(dir, "none")
		}),
		"there is no certificate in": kafka(func(k *config.Kafka) {
			k.PasswordFile, k.TLS, k.TLSCA = file("p", "hidden"), "on", file("ca", "hidden")
		}),
		"plain sends the password": kafka(func(k *config.Kafka) {
			k.PasswordFile, k.SASL, k.Brokers = file("p", "hidden"), "plain", "192.0.2.1:9092"
		}),
		"kafka.sasl: there is a user":   kafka(func(k *config.Kafka) { k.SASL = "none" }),
		"forward.shared_key_file: open": func(cfg *config.Config) { cfg.Forward.SharedKeyFile = filepath.Join(dir, "none") },
		"forward.users_file: users":     func(cfg *config.Config) { cfg.Forward.UsersFile = file("u", "a:hidden") },
		"line 2 of": func(cfg *config.Config) {
			cfg.Forward.SharedKeyFile, cfg.Forward.UsersFile = file("p", "hidden"), file("u", "a:b\nhidden\n")
		},
		"names nobody": func(cfg *config.Config) {
			cfg.Forward.SharedKeyFile, cfg.Forward.UsersFile = file("p", "hidden"), file("n", "\n")
		},
	} {
		cfg := testConfig(t)
		change(&cfg)
		err := cfg.Check()
		if err == nil {
			var c *Collector
			if c, err = New(cfg, nil); err == nil {
				c.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
