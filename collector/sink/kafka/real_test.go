package kafka_test

import (
	"bytes"
	"context"
	"fmt"
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
	java, jars, dir, addr string

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
	port, control := freePort(t), freePort(t)
	k.addr = fmt.Sprintf("127.0.0.1:%d", port)
	settings := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
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
`, port, control, filepath.Join(k.dir, "data"), partitions)
	if err := os.WriteFile(k.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	// Any 16 bytes in base64 are the cluster's id.
	out, err := k.command("kafka.tools.StorageTool", "format", "-t", "cm9sbHdheS10ZXN0LTAwMA", "-c", k.settings()).CombinedOutput()
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
