package receivertest

import "testing"

// TestSplunkFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestSplunkFluentBit(t *testing.T) {
	const head = "    name splunk\n    host HOST\n    port PORT\n    splunk_token secret\n"
	Agents(t, FluentBit, map[string]string{
		"splunk/fluent-bit": head,
		"splunk/fluent-bit-fields": head + "    event_host web-1\n    event_source shop\n    event_sourcetype app\n    event_index main\n    event_field number $n\n" +
			"    channel 0123\n    compress gzip\n",
	})
}
