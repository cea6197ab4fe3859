package collector

import (
	"slices"
	"strings"
	"testing"
)

// Addresses that the network reaches are warned of once each, in words that hold
// for them and lead to a configuration that is accepted.
func TestWarnOpen(t *testing.T) {
	key := t.TempDir() + "/key"
	writeFile(t, key, "correct horse")
	const (
		openHTTP  = "OPEN TO THE NETWORK: anybody who reaches this address can write logs here, and read all of them; set access.tokens, or listen on 127.0.0.1"
		plainHTTP = "NOT ENCRYPTED: tokens and logs can be read on their way to this address; set tls.cert and tls.key, or let a proxy in front do it"
		open      = "OPEN TO THE NETWORK: anybody who reaches this address can write logs here; listen on 127.0.0.1, or "
	)
	cfg := withTokens(t)
	tokens := cfg.Access.Tokens
	cfg.Access.Tokens, cfg.Listen, cfg.ListenGRPC = "", "0.0.0.0:0", "127.0.0.1:0"
	cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "0.0.0.0:0", "udp://0.0.0.0:0 tcp://127.0.0.1:0", "tcp://0.0.0.0:0"
	r := run(t, cfg)
	warned := func() (list []string) {
		for line := range strings.Lines(r.log.String()) {
			if _, msg, ok := strings.Cut(line, `level=WARN msg="`); ok {
				text, _, _ := strings.Cut(msg, `"`)
				list = append(list, text)
			}
		}
		return list
	}
	if got, want := warned(), []string{openHTTP, open + "use tls:// and tls.client_ca", open + "use tls:// and tls.client_ca",
		open + "use tls:// and tls.client_ca, or forward.shared_key_file"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.stop()

	cfg.ListenTCP, cfg.ListenSyslog, cfg.Forward.SharedKeyFile, cfg.Access.Tokens = "", "", key, tokens
	r = run(t, cfg)
	want := []string{plainHTTP, "NOT ENCRYPTED: logs can be read on their way to this address; use tls://"}
	if got := warned(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	cfg.Access.Tokens = ""
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if got := warned(); len(got) != 4 || got[2] != openHTTP {
		t.Errorf("after tokens were taken away: %q", got)
	}
}
