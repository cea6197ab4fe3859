package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
)

// broker is an Apache Kafka of one node in KRaft mode, run from its jars.
type broker struct {
	java, jars, dir string
	addr            string // anybody may produce there
	secure          string // SASL is wanted there

	log    lockedBuffer
	cmd    *exec.Cmd
	exited chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// kafkaJars returns the folder of the jars, 43 MB, which Maven fetches into the
// user's cache only if nothing may be skipped; otherwise they have to be there.
func kafkaJars(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		doortest.Missing(t, err.Error())
	}
	jars := filepath.Join(cache, "rollway-test", "kafka-4.1.1")
	if _, err := os.Stat(jars); err == nil {
		return jars
	}
	if os.Getenv("REQUIRE") != "all" {
		t.Skipf("Kafka's jars are not in %s; with REQUIRE=all Maven puts them there", jars)
	}
	mvn, temp := doortest.Program(t, "mvn"), jars+".part"
	out, err := exec.Command(mvn, "-q", "-B", "-f", "testdata/kafka/pom.xml", "dependency:copy-dependencies",
		"-DoutputDirectory="+temp, "-DincludeScope=runtime").CombinedOutput()
	if err != nil {
		doortest.Missing(t, fmt.Sprintf("Maven cannot fetch Kafka: %v\n%s", err, out))
	}
	if err := os.Rename(temp, jars); err != nil {
		t.Fatal(err)
	}
	return jars
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startKafka formats a folder and starts a broker on it.
func startKafka(t *testing.T) *broker {
	t.Helper()
	k := &broker{java: doortest.Program(t, "java"), jars: kafkaJars(t), dir: t.TempDir()}
	port, control, secure := freePort(t), freePort(t), freePort(t)
	k.addr, k.secure = fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", secure)
	settings := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,SECURE://127.0.0.1:%[5]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d,SECURE://127.0.0.1:%[5]d
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_shop="%[6]s";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
inter.broker.listener.name=PLAINTEXT
log.dirs=%[3]s
num.partitions=%[4]d
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
`, port, control, filepath.Join(k.dir, "data"), partitions, secure, password)
	if err := os.WriteFile(k.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	// Any 16 bytes in base64 are the cluster's id.
	out, err := k.command("kafka.tools.StorageTool", "format", "-t", "cm9sbHdheS10ZXN0LTAwMA", "-c", k.settings(),
		"--add-scram", "SCRAM-SHA-256=[name=shop,password="+password+"]", "--add-scram", "SCRAM-SHA-512=[name=shop,password="+password+"]").CombinedOutput()
	if err != nil {
		t.Fatalf("format: %v\n%s", err, out)
	}
	k.start(t)
	t.Cleanup(func() {
		k.kill()
		if t.Failed() {
			log := k.log.String()
			t.Logf("Kafka said: …%s", log[max(0, len(log)-5000):])
		}
	})
	return k
}

// password is that of the user shop.
const password = "correct-horse"

func (k *broker) settings() string { return filepath.Join(k.dir, "server.properties") }

func (k *broker) command(args ...string) *exec.Cmd {
	return exec.Command(k.java, append([]string{"-Xmx256m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(k.jars, "*")}, args...)...)
}

func (k *broker) start(t *testing.T) {
	t.Helper()
	k.cmd = k.command("kafka.Kafka", k.settings())
	k.cmd.Stdout, k.cmd.Stderr = &k.log, &k.log
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.exited = make(chan error, 1)
	go func(cmd *exec.Cmd) { k.exited <- cmd.Wait() }(k.cmd)
}

func (k *broker) kill() {
	k.cmd.Process.Kill()
	k.exited <- <-k.exited
}

// createTopic waits until the broker takes a topic.
func (k *broker) createTopic(t *testing.T) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(k.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		_, err := kadm.NewClient(c).CreateTopic(ctx, partitions, 1, nil, topic)
		if err == nil || strings.Contains(err.Error(), "TOPIC_ALREADY_EXISTS") {
			return
		}
		select {
		case exit := <-k.exited:
			k.exited <- exit
			t.Fatalf("Kafka ended: %v", exit)
		case <-ctx.Done():
			t.Fatalf("Kafka takes no topic: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A real broker is killed under load, twice, and the sink once while it is away:
// each line is in the topic at least once, in order in each partition, and no
// append waited for any of it.
func TestRealKafka(t *testing.T) {
	k := startKafka(t)
	k.createTopic(t)
	j := openJournal(t)
	o := kafka.Options{Brokers: []string{k.addr}}
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
		during(k.kill)
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
		k.start(t)
		during(func() { k.createTopic(t) })
		load(3000)
		awaitDelivered(t, j, r, began)
	}
	stop()
	again := 0
	for _, times := range consume(t, []string{k.addr}, j, n, "") {
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
	k := startKafka(t)
	k.createTopic(t)
	j := openJournal(t)
	log := &lockedBuffer{}
	_, stop := run(t, j, kafka.Options{Brokers: []string{k.secure}, SASL: "scram-sha-512", User: "shop", Password: "not the password", Log: slog.New(slog.NewTextHandler(log, nil))})
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
		r, stop := run(t, j, kafka.Options{Brokers: []string{k.secure}, SASL: mechanism, User: "shop", Password: password})
		began := r.Stats().Cursor
		store(t, j, 1+500*i, 500)
		awaitDelivered(t, j, r, began)
		stop()
	}
	consume(t, []string{k.addr}, j, 1501, "") // all of them
}
