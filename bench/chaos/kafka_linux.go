package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollway/rollway/collector/ledger"
)

const (
	kafkaTopic      = "rollway.chaos"
	kafkaPartitions = 2
)

// kafkaJars is where the tests of the collector's sink keep Apache Kafka.
func kafkaJars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rollway-test", "kafka-4.1.1")
	if _, err := os.Stat(dir); err != nil {
		return "", errors.New("the jars of Apache Kafka, which `REQUIRE=all go test ./sink/kafka` in the folder collector fetches")
	}
	return dir, nil
}

// kafkaSettings make one node in KRaft mode: address, address of the
// controller, folder, partitions.
const kafkaSettings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
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
`

// A broker is an Apache Kafka of one node.
type broker struct {
	jars, settings, addr string
	said                 lockedBuffer
	cmd                  *exec.Cmd
}

func newBroker(dir string) (*broker, error) {
	jars, err := kafkaJars()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	control, err := freeAddr()
	if err != nil {
		return nil, err
	}
	k := &broker{jars: jars, addr: addr, settings: filepath.Join(dir, "server.properties")}
	text := fmt.Sprintf(kafkaSettings, addr, control, filepath.Join(dir, "kafka"), kafkaPartitions)
	if err := os.WriteFile(k.settings, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// Any 16 bytes in base64 are the cluster's id.
	if out, err := k.java("kafka.tools.StorageTool", "format", "-t", "cm9sbHdheS10ZXN0LTAwMA", "-c", k.settings).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format Kafka's folder: %w: %s", err, out)
	}
	return k, nil
}

func (k *broker) java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx256m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(k.jars, "*")}, args...)...)
}

func (k *broker) start() error {
	k.cmd = k.java("kafka.Kafka", k.settings)
	k.cmd.Stdout, k.cmd.Stderr = &k.said, &k.said
	return k.cmd.Start()
}

func (k *broker) kill() {
	if k.cmd != nil && k.cmd.ProcessState == nil {
		k.cmd.Process.Kill()
		k.cmd.Wait()
	}
}

// ready waits until the broker has the topic.
func (k *broker) ready() error {
	c, err := kgo.NewClient(kgo.SeedBrokers(k.addr))
	if err != nil {
		return err
	}
	defer c.Close()
	create := kmsg.NewCreateTopicsRequestTopic()
	create.Topic, create.NumPartitions, create.ReplicationFactor = kafkaTopic, kafkaPartitions, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, create)
	const topicExists = 36 // TOPIC_ALREADY_EXISTS
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		resp, err := req.RequestWith(ctx, c)
		if err == nil && len(resp.Topics) == 1 && (resp.Topics[0].ErrorCode == 0 || resp.Topics[0].ErrorCode == topicExists) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Kafka takes no topic: %v: %s", err, k.said.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// kafkaAway kills Kafka, and the collector meanwhile too, and has both back:
// each acknowledged event is in the topic at least once.
func kafkaAway(s *scene) error {
	k, err := newBroker(s.dir)
	if err != nil {
		return err
	}
	defer k.kill()
	if err := errors.Join(k.start(), k.ready()); err != nil {
		return err
	}
	s.config = fmt.Sprintf("journal:\n  segment_size: 4MiB\nkafka:\n  brokers: %q\n  topic: %q\n", k.addr, kafkaTopic)
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(4, 10*time.Millisecond)
	away := pick(s, 130*time.Second, 3*time.Second)
	if err := s.more(200); err != nil {
		return err
	}
	for round := range pick(s, 2, 1) {
		if err := await("deliveries", func() bool { sink, err := s.sink(); return err == nil && sink.Delivered > 100 }); err != nil {
			return err
		}
		k.kill()
		s.try.Rounds++
		time.Sleep(away / 2)
		if round == 0 {
			s.kill()
			if err := s.check(false); err != nil {
				return err
			}
			if err := s.start(); err != nil {
				return err
			}
		}
		time.Sleep(away / 2)
		if err := s.reconcile(true); err != nil {
			return err
		}
		sink, err := s.sink()
		if err != nil {
			return err
		}
		s.try.Notes = append(s.try.Notes, fmt.Sprintf("away for %v, then %d events pending", away, sink.Pending))
		if err := errors.Join(k.start(), k.ready()); err != nil {
			return err
		}
		away = pick(s, 20*time.Second, time.Second)
	}
	if err := s.load.drain(drainWithin); err != nil {
		return err
	}
	if err := await("all to be delivered", func() bool { sink, err := s.sink(); return err == nil && sink.Pending == 0 }); err != nil {
		return err
	}
	if err := s.reconcile(true); err != nil {
		return err
	}
	if err := s.stop(false); err != nil {
		return err
	}
	if err := s.check(true); err != nil {
		return err
	}
	return s.consume(k)
}

// sink asks the collector for the account of its sink.
func (s *scene) sink() (ledger.Sink, error) {
	resp, err := http.Get("http://" + s.addr + "/api/ledger")
	if err != nil {
		return ledger.Sink{}, err
	}
	defer resp.Body.Close()
	var l ledger.Ledger
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
		return ledger.Sink{}, err
	}
	if len(l.Sinks) != 1 {
		return ledger.Sink{}, fmt.Errorf("%d sinks", len(l.Sinks))
	}
	return l.Sinks[0], nil
}

// consume looks all acknowledged events up in the topic.
func (s *scene) consume(k *broker) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(k.addr), kgo.ConsumeTopics(kafkaTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer c.Close()
	acked := s.account.snapshot()
	seen, missing, again := map[[2]int]int{}, 0, 0
	for number, r := range acked {
		if r.acked {
			missing += events(number)
		}
	}
	// Behind the last acknowledged event there may be some of those delivered
	// twice; they are not waited for.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for missing > 0 && ctx.Err() == nil {
		for _, record := range c.PollFetches(ctx).Records() {
			number, index := parse(record.Value)
			if number < 0 || number >= len(acked) || !bytes.Equal(messageOf(record.Value), message(nil, number, index)) {
				s.try.Alien++
				continue
			}
			if seen[[2]int{number, index}]++; seen[[2]int{number, index}] > 1 {
				again++
			} else if acked[number].acked {
				missing--
			}
		}
	}
	s.try.Lost += missing
	s.try.Notes = append(s.try.Notes, fmt.Sprintf("in the topic: all %d events, %d of them again", len(seen), again))
	if missing > 0 {
		return fmt.Errorf("%d acknowledged events are not in the topic; Kafka said: %s", missing, strings.TrimSpace(k.said.tail()))
	}
	return nil
}
