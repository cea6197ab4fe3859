package receivertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

// TestText sends one line of text to every receiver: it has its own level everywhere, and
// its own time where the protocol has none.
func TestText(t *testing.T) {
	const text = "2026-05-28 12:40:00,123 [main] ERROR com.example.Shop - charge failed"
	const own, given = `{"time":"2026-05-28T12:40:00.123000000Z","level":"ERROR","msg":"` + text + `"`, `{"time":"2026-05-28T12:40:07.000000000Z","level":"ERROR","msg":"` + text + `"`
	received := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	str := func(s string) string { return fmt.Sprintf("\xd9%c%s", len(s), s) }
	over := func(p receiver.Protocol, body string) string {
		lines, _ := decodetest.Lines(t, p, "application/json", body, received)
		return lines[0]
	}
	batch := new(normalize.Batch)
	if err := normalize.New(normalize.Limits{}).Body(batch, []byte(`{"message":"`+text+`"}`), received); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want string }{
		"JSON":              {string(batch.Lines), own},
		"OTLP":              {over(otlp.Protocol, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"`+text+`"}}]}]}]}`), own},
		"OTLP with a time":  {over(otlp.Protocol, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1779972007000000000","body":{"stringValue":"`+text+`"}}]}]}]}`), given},
		"Loki":              {over(loki.Protocol, `{"streams":[{"stream":{"job":"shop"},"values":[["1779972007000000000","`+text+`"]]}]}`), given},
		"Elasticsearch":     {over(elastic.Bulk, "{\"index\":{}}\n{\"message\":\""+text+"\"}\n"), own},
		"Splunk":            {over(splunk.Event, `{"event":"`+text+`"}`), own},
		"Splunk, raw":       {over(splunk.Raw, text), own},
		"Sentry's logs":     {over(sentry.Envelope, "{}\n{\"type\":\"log\"}\n{\"items\":[{\"timestamp\":1779972007,\"body\":\""+text+"\"}]}"), given},
		"syslog":            {replaySyslog(t, []byte(text+"\n")), own},
		"syslog, no time":   {replaySyslog(t, []byte("<14>"+text+"\n")), strings.Replace(own, "ERROR", "INFO", 1)[:47]},
		"forward":           {replayForward(t, []byte("\x93\xa3app\xce\x6a\x18\x37\xa7\x81\xa3log"+str(text))), given},
		"forward, no time":  {replayForward(t, []byte("\x93\xa3app\xc0\x81\xa3log"+str(text))), own},
		"GELF":              {over(splunk.Event, `{"event":{"version":"1.1","short_message":"`+text+`"}}`), own},
		"a line of a file":  {over(splunk.Raw, text+"\r\n"), own},
		"a level of Loki's": {over(loki.Protocol, `{"streams":[{"stream":{"level":"warn"},"values":[["1779972007000000000","`+text+`"]]}]}`), strings.Replace(given, "ERROR", "WARN", 1)},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("%s: %s, expected %s", name, c.got, c.want)
		}
	}
}
