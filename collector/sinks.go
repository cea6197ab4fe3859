package collector

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/secrets"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/collector/sink/kafka"
)

// kafkaSink is the name of the Kafka sink and its cursor.
const kafkaSink = "kafka"

// holders are the sinks for which retention waits.
func holders(k *config.Kafka) []string {
	if strings.TrimSpace(k.Brokers) == "" || k.WhenFull == config.DropOldest {
		return nil
	}
	return []string{kafkaSink}
}

// openSinks makes the sinks that the configuration asks for. It waits for no
// destination.
func (c *Collector) openSinks() error {
	k := c.config.Kafka
	brokers := strings.Fields(k.Brokers)
	if len(brokers) == 0 {
		return nil
	}
	encryption, err := secrets.KafkaTLS(k)
	if err != nil {
		return err
	}
	password, err := secrets.KafkaPassword(k)
	if err != nil {
		return err
	}
	c.kafka, err = kafka.New(kafka.Options{
		Brokers: brokers, Topic: k.Topic, Key: k.Key, Journal: c.journal.ID(),
		MaxRecord: int(k.MaxRecord), Compression: k.Compression,
		TLS: encryption, SASL: k.SASL, User: k.User, Password: kafka.Secret(password), Log: c.log,
	})
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	r, err := sink.New(c.journal, c.kafka, sink.Options{
		Name: kafkaSink, MaxEvents: k.MaxEvents, MaxBytes: int(k.MaxBytes), MaxAge: k.MaxAge,
		DropOldest: k.WhenFull == config.DropOldest, Log: c.log,
	})
	if err != nil {
		return err
	}
	c.sinks = append(c.sinks, r)
	return nil
}
