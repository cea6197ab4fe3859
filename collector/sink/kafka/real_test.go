package kafka_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
	"github.com/rollway/rollway/collector/sink/kafka/kafkatest"
	"github.com/rollway/rollway/internal/testkit"
)

// wantJars puts the jars, 43 MB, which Maven fetches, into the user's cache only
// if nothing may be skipped; otherwise they have to be there.
func wantJars(t *testing.T) {
	t.Helper()
	jars, err := kafkatest.Jars()
	if err != nil {
		testkit.Missing(t, "a folder for caches: "+err.Error())
	}
	if _, err := os.Stat(jars); err == nil {
		return
	}
	if !testkit.All() {
		testkit.Missing(t, "Kafka's jars in "+jars+", where Maven puts them with REQUIRE=all")
	}
	testkit.Program(t, "mvn")
	if err := kafkatest.Fetch(); err != nil {
		testkit.Missing(t, "the jars of Apache Kafka: "+err.Error())
	}
}

// startKafka formats a folder and starts a broker on it, which has the topic.
func startKafka(t *testing.T) *kafkatest.Broker {
	t.Helper()
	testkit.Program(t, "java")
	wantJars(t)
	k, err := kafkatest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Kill()
		if t.Failed() {
			t.Logf("Kafka said: …%s", k.Said.Tail(5000))
		}
	})
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	if err := k.CreateTopic(topic, partitions, limit); err != nil {
		t.Fatal(err)
	}
	return k
}

// A real broker is killed under load, twice, and the sink once while it is away:
// each line is in the topic at least once, in order in each partition, and no
// append waited for any of it.
func TestRealKafka(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "Apache Kafka")
	k := startKafka(t)
	j := openJournal(t)
	o := kafka.Options{Brokers: []string{k.Addr}}
	r, stop := run(t, j, o)
	n, began := 0, uint64(0)
	load := func(lines int) { // what is stored while something happens
		for range lines / 10 {
			store(t, j, n, 10)
			n += 10
		}
	}
	during := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		for {
			load(20)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	for round := range 2 {
		load(3000)
		awaitSome(t, r)
		during(k.Kill)
		load(3000)
		if round == 1 {
			if s := r.Stats(); s.Pending == 0 {
				t.Errorf("all is delivered to a broker that is dead: %+v", s)
			}
			stop()
			began = r.Stats().Cursor
			r, stop = run(t, j, o)
			load(1000)
		}
		if err := k.Start(); err != nil {
			t.Fatal(err)
		}
		var err error
		during(func() { err = k.CreateTopic(topic, partitions, limit) })
		if err != nil {
			t.Fatal(err)
		}
		load(3000)
		awaitDelivered(t, j, r, began)
	}
	stop()
	again := 0
	for _, times := range consume(t, []string{k.Addr}, j, n, "") {
		again += times - 1
	}
	t.Logf("%d lines, %d of them came again", n, again)
}

// awaitSome waits until something is delivered.
func awaitSome(t *testing.T, r *sink.Runner) {
	t.Helper()
	for end := time.Now().Add(limit); r.Stats().Delivered == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is delivered: %+v", r.Stats())
		}
	}
}

// The real Kafka lets in who knows the password, by each mechanism.
func TestRealKafkaSASL(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, "Apache Kafka")
	k := startKafka(t)
	j := openJournal(t)
	log := &testkit.Buffer{}
	_, stop := run(t, j, kafka.Options{Brokers: []string{k.Secure}, SASL: "scram-sha-512", User: kafkatest.User, Password: "not the password", Log: slog.New(slog.NewTextHandler(log, nil))})
	store(t, j, 0, 1)
	for end := time.Now().Add(limit); !strings.Contains(log.String(), "unable to initialize sasl"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log does not tell of the wrong password: %s", log)
		}
	}
	stop()
	if strings.Contains(log.String(), "not the password") {
		t.Errorf("the password is in the log: %s", log)
	}
	for i, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		r, stop := run(t, j, kafka.Options{Brokers: []string{k.Secure}, SASL: mechanism, User: kafkatest.User, Password: kafkatest.Password})
		began := r.Stats().Cursor
		store(t, j, 1+500*i, 500)
		awaitDelivered(t, j, r, began)
		stop()
	}
	consume(t, []string{k.Addr}, j, 1501, "") // all of them
}
