// Package kafkatest runs a real Apache Kafka for tests: a broker of one node
// that is its own controller, from jars in the user's cache.
package kafkatest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

// User and Password are who is let in at the address Secure.
const (
	User     = "shop"
	Password = "correct-horse"
)

// Jars is the folder of Kafka's jars, whether it is there or not.
func Jars() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "rollway-test", "kafka-4.1.1"), err
}

//go:embed pom.xml
var pom []byte

// Fetch has Maven put the jars, 43 MB, where Jars says.
func Fetch() error {
	jars, err := Jars()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "kafka-*.xml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(pom)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := fetch.Into(jars, func(part string) *exec.Cmd {
		return exec.Command("mvn", "-q", "-B", "-f", file.Name(), "dependency:copy-dependencies", "-DoutputDirectory="+part, "-DincludeScope=runtime")
	}); err != nil {
		return fmt.Errorf("Maven cannot fetch Kafka: %w", err)
	}
	return nil
}

// settings are of one node in KRaft mode: address, address with SASL, address of
// the controller, folder, password.
const settings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[3]s
listeners=PLAINTEXT://%[1]s,SECURE://%[2]s,CONTROLLER://%[3]s
advertised.listeners=PLAINTEXT://%[1]s,SECURE://%[2]s
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_` + User + `="%[5]s";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
inter.broker.listener.name=PLAINTEXT
log.dirs=%[4]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
`

// A Broker can be started and killed many times, always at the same
// addresses and with what it stored. One goroutine at a time uses it.
type Broker struct {
	Addr   string         // host:port, where anybody may produce
	Secure string         // host:port, where SASL is wanted
	Said   testkit.Buffer // what it printed

	jars, settings string
	cmd            *exec.Cmd
	exited         chan struct{} // closed when the process has ended
	exit           error         // then, how
}

// New formats a folder for a broker, which needs java in PATH and the jars.
func New(dir string) (*Broker, error) {
	b := &Broker{settings: filepath.Join(dir, "server.properties")}
	var control string
	for _, addr := range []*string{&b.Addr, &b.Secure, &control} {
		var err error
		if *addr, err = testkit.FreeAddr(); err != nil {
			return nil, err
		}
	}
	var err error
	if b.jars, err = Jars(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(settings, b.Addr, b.Secure, control, filepath.Join(dir, "kafka"), Password)
	if err := os.WriteFile(b.settings, []byte(text), 0o600); err != nil {
		return nil, err
	}
	scram := "=[name=" + User + ",password=" + Password + "]"
	// Any 16 bytes in base64 are the cluster's id.
	out, err := b.java("kafka.tools.StorageTool", "format", "-t", "cm9sbHdheS10ZXN0LTAwMA", "-c", b.settings,
		"--add-scram", "SCRAM-SHA-256"+scram, "--add-scram", "SCRAM-SHA-512"+scram).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("format Kafka's folder: %w: %s", err, out)
	}
	return b, nil
}

func (b *Broker) java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx256m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", filepath.Join(b.jars, "*")}, args...)...)
}

// Start begins the process; CreateTopic waits until it serves.
func (b *Broker) Start() error {
	cmd, exited := b.java("kafka.Kafka", b.settings), make(chan struct{})
	cmd.Stdout, cmd.Stderr = &b.Said, &b.Said
	if err := cmd.Start(); err != nil {
		return err
	}
	b.cmd, b.exited = cmd, exited
	go func() {
		b.exit = cmd.Wait()
		close(exited)
	}()
	return nil
}

// Kill ends the process with SIGKILL, if it runs.
func (b *Broker) Kill() {
	if b.cmd != nil {
		b.cmd.Process.Kill()
		<-b.exited
	}
}

// CreateTopic waits until the broker has the topic, for as long as limit.
func (b *Broker) CreateTopic(topic string, partitions int32, limit time.Duration) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := create(ctx, c, topic, partitions)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		select {
		case <-b.exited:
			return fmt.Errorf("Kafka ended: %v: %s", b.exit, strings.TrimSpace(b.Said.Tail(2000)))
		case <-ctx.Done():
			return fmt.Errorf("Kafka takes no topic: %w: %s", err, strings.TrimSpace(b.Said.Tail(2000)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func create(ctx context.Context, c *kgo.Client, topic string, partitions int32) error {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return fmt.Errorf("%d topics in the answer", len(resp.Topics))
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}
