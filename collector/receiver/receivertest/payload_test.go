package receivertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/datadog"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

// TestPayload sends an event as the text of another one to every receiver, as JSON and as
// logfmt: its level, message, trace and attribute arrive.
func TestPayload(t *testing.T) {
	for _, text := range []string{`{"level":"error","msg":"it failed","trace_id":"abc","n":1}`, `level=error msg="it failed" trace_id=abc n=1`} {
		q, _ := json.Marshal(text)
		quoted := string(q)
		str := func(s string) string { return fmt.Sprintf("\xd9%c%s", len(s), s) }
		over := func(p receiver.Protocol, kind, body string) string {
			lines, _ := decodetest.Lines(t, p, kind, body, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
			return lines[0]
		}
		const asJSON = "application/json"
		for name, got := range map[string]string{
			"JSON":             over(receiver.Plain, asJSON, `{"log":`+quoted+`,"stream":"stderr"}`),
			"journal":          over(receiver.Plain, asJSON, `{"MESSAGE":`+quoted+`,"PRIORITY":"6"}`),
			"lines":            over(receiver.Plain, "text/plain", text+"\n"),
			"OTLP":             over(otlp.Protocol, asJSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1779972007000000000","body":{"stringValue":`+quoted+`}}]}]}]}`),
			"Loki":             over(loki.Protocol, asJSON, `{"streams":[{"stream":{"job":"shop"},"values":[["1779972007000000000",`+quoted+`]]}]}`),
			"Elasticsearch":    over(elastic.Bulk, asJSON, "{\"index\":{}}\n{\"message\":"+quoted+"}\n"),
			"Datadog":          over(datadog.Protocol, asJSON, `[{"message":`+quoted+`,"ddsource":"x","status":"info"}]`),
			"Splunk":           over(splunk.Event, asJSON, `{"time":1779972000,"event":`+quoted+`}`),
			"Splunk, Docker":   over(splunk.Event, asJSON, `{"time":1779972000,"event":{"line":`+quoted+`,"source":"stderr","tag":"x"}}`),
			"Splunk, raw":      over(splunk.Raw, asJSON, text),
			"Sentry's logs":    over(sentry.Envelope, asJSON, "{}\n{\"type\":\"log\"}\n{\"items\":[{\"timestamp\":1779972007,\"body\":"+quoted+"}]}"),
			"syslog":           replaySyslog(t, []byte("<14>1 2026-05-28T12:40:00Z h shop 7 - - "+text+"\n")),
			"forward":          replayForward(t, []byte("\x93\xa3app\xce\x6a\x18\x37\xa7\x81\xa3log"+str(text))),
			"GELF":             over(splunk.Event, asJSON, `{"event":{"version":"1.1","level":6,"timestamp":1779972000,"short_message":`+quoted+`}}`),
			"a container's":    over(receiver.Plain, "text/plain", "2026-05-28T12:40:00Z stderr F "+text),
			"with @cee before": replaySyslog(t, []byte("<14>Jan  1 00:00:00 h app: @cee: "+text+"\n")),
		} {
			for _, want := range []string{`"level":"ERROR","msg":"it failed"`, `"trace_id":"abc"`, `"n":1`} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s has no %s", name, got, want)
				}
			}
		}
	}
}
