package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/collector/sink/kafka/kafkatest"
)

const (
	kafkaTopic      = "rollway.chaos"
	kafkaPartitions = 2
)

// kafkaJars fails if the jars of Apache Kafka are not there. They are fetched only
// if nothing may be left out.
func kafkaJars() error {
	dir, err := kafkatest.Jars()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if os.Getenv("REQUIRE") != "all" {
		return errors.New("the jars of Apache Kafka, which `REQUIRE=all go test ./sink/kafka` in the folder collector fetches")
	}
	return kafkatest.Fetch()
}

// startKafka starts the broker and waits until it has the topic.
func startKafka(k *kafkatest.Broker) error {
	if err := k.Start(); err != nil {
		return err
	}
	return k.CreateTopic(kafkaTopic, kafkaPartitions, 5*time.Minute)
}

// kafkaAway kills Kafka, and the collector meanwhile too, and has both back:
// each acknowledged event is in the topic at least once.
func kafkaAway(s *scene) error {
	k, err := kafkatest.New(s.dir)
	if err != nil {
		return err
	}
	defer k.Kill()
	if err := startKafka(k); err != nil {
		return err
	}
	s.config = fmt.Sprintf("journal:\n  segment_size: 4MiB\nkafka:\n  brokers: %q\n  topic: %q\n", k.Addr, kafkaTopic)
	if err := s.start(); err != nil {
		return err
	}
	s.load.begin(4, 10*time.Millisecond)
	away := pick(s, 130*time.Second, 3*time.Second)
	if err := s.more(200); err != nil {
		return err
	}
	for round := range pick(s, 2, 1) {
		if err := await("deliveries", s.delivered, func() bool { return s.delivered() > 100 }); err != nil {
			return err
		}
		k.Kill()
		s.try.Rounds++
		time.Sleep(away / 2)
		if round == 0 {
			if err := s.restart(); err != nil {
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
		if err := startKafka(k); err != nil {
			return err
		}
		away = pick(s, 20*time.Second, time.Second)
	}
	if err := s.load.drain(); err != nil {
		return err
	}
	if err := await("all to be delivered", s.delivered, func() bool { sink, err := s.sink(); return err == nil && sink.Pending == 0 }); err != nil {
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

// delivered returns how many events the sink has delivered since it began; 0 if
// that cannot be asked.
func (s *scene) delivered() int {
	sink, err := s.sink()
	if err != nil {
		return 0
	}
	return int(sink.Delivered)
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
func (s *scene) consume(k *kafkatest.Broker) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr), kgo.ConsumeTopics(kafkaTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
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
	// Events delivered twice may follow the last acknowledged one; they are not
	// waited for. Missing events have a minute, counted from the last one that was
	// found.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	patience := time.AfterFunc(time.Minute, cancel)
	defer patience.Stop()
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
				patience.Reset(time.Minute)
			}
		}
	}
	s.try.Lost += missing
	s.try.Notes = append(s.try.Notes, fmt.Sprintf("in the topic: all %d events, %d of them again", len(seen), again))
	if missing > 0 {
		return fmt.Errorf("%d acknowledged events are not in the topic; Kafka said: %s", missing, strings.TrimSpace(k.Said.Tail(2000)))
	}
	return nil
}
